#include "tools/study/drop_spans.hpp"

#include "tools/study/blocking.hpp"
#include "tools/study/notes.hpp"
#include "tools/study/recompute.hpp"
#include "tools/study/staleness_facts.hpp"
#include "tools/study/stash_gap.hpp"

namespace stageline {

void drop_spans(Outcome& outcome) {
  if (outcome.facts) return;
  SpanFacts facts;
  facts.recompute = recompute_fraction(outcome);
  facts.blocking = blocking_fraction(outcome);
  facts.blocking_by_group = blocking_of_busiest(outcome);
  facts.repeats = repeats_by_stage(outcome);
  if (outcome.synchrony == Synchrony::asynchronous) {
    facts.live = live_microbatches(outcome.program, outcome.timeline);
  }
  facts.path = path_shares(outcome);
  facts.is_apart = is_apart(outcome);
  facts.is_plain = is_plain(outcome.program);
  facts.offloads_for_free = offloads_for_free(outcome);
  outcome.facts = std::move(facts);
  outcome.graph = {};
  outcome.times = {};
  outcome.timeline = {};
  outcome.metrics.idle = {};
  outcome.critical_path = {};
  for (StageVersions& stage : outcome.versions) stage.events = {};
  outcome.program.ops = {};
}

std::size_t held_spans(const Outcome& outcome) {
  std::size_t held =
      outcome.graph.tasks() + outcome.metrics.idle.size() + outcome.critical_path.size();
  for (const Spans& lane : outcome.timeline.lanes) held += lane.size();
  for (const std::vector<Op>& list : outcome.program.ops) held += list.size();
  for (const StageVersions& stage : outcome.versions) held += stage.events.size();
  return held;
}

std::vector<PathShare> path_shares(const Outcome& outcome) {
  return outcome.facts ? outcome.facts->path : shares(outcome.critical_path);
}

}  // namespace stageline
