#include "tools/study/figures/drop_spans.hpp"

#include <utility>

#include "tools/study/figures/blocking.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/figures/recompute.hpp"
#include "tools/study/figures/staleness_facts.hpp"
#include "tools/study/pace/stash_gap.hpp"

namespace stageline {
namespace {

// Unlike `held = {}`, which leaves a vector its memory.
template <class T>
void free_all(T& held) {
  held = T();
}

}  // namespace

void drop_spans(Outcome& outcome) {
  if (outcome.facts) return;
  SpanFacts facts;
  facts.recompute = recompute_fraction(outcome);
  facts.blocking = blocking_fraction(outcome);
  facts.blocking_by_group = blocking_of_busiest(outcome);
  facts.repeats = repeats_by_stage(outcome);
  facts.stage.reserve(outcome.costs.stage.size());
  for (std::size_t s = 0; s < outcome.costs.stage.size(); ++s) {
    facts.stage.push_back(stage_figures(outcome, s));
  }
  if (outcome.synchrony == Synchrony::asynchronous) facts.stream = stream_facts(outcome);
  facts.path = path_shares(outcome);
  facts.is_apart = is_apart(outcome);
  facts.is_plain = is_plain(outcome.program);
  facts.copies = host_copies(outcome);
  outcome.facts = std::move(facts);
  free_all(outcome.graph);
  free_all(outcome.times);
  free_all(outcome.timeline);
  free_all(outcome.metrics.idle);
  free_all(outcome.critical_path);
  for (StageVersions& stage : outcome.versions) {
    free_all(stage.events);
    free_all(stage.copies);
  }
  free_all(outcome.program.ops);
  if (outcome.period) free_all(outcome.period->cycle);
  Costs kept;
  kept.bytes_known = outcome.costs.bytes_known;
  kept.network.hosts = std::move(outcome.costs.network.hosts);
  outcome.costs = std::move(kept);
}

std::size_t held_spans(const Outcome& outcome) {
  std::size_t held = outcome.graph.op.capacity() + outcome.metrics.idle.capacity() +
                     outcome.critical_path.capacity();
  for (const Spans& lane : outcome.timeline.lanes) held += lane.size();
  for (const std::vector<Op>& list : outcome.program.ops) held += list.capacity();
  for (const StageVersions& stage : outcome.versions) {
    held += stage.events.capacity() + stage.copies.capacity();
  }
  return held + outcome.costs.stage.capacity();
}

StageFigures stage_figures(const Outcome& outcome, std::size_t stage) {
  if (outcome.facts) return outcome.facts->stage[stage];
  const StageCosts& costs = outcome.costs.stage[stage];
  StageFigures figures{costs.forward,  costs.input_grad, costs.weight_grad,
                       costs.backward, costs.update,     costs.blocking,
                       std::nullopt,   costs.weights,    costs.stash()};
  if (costs.reduction) {
    figures.reduction = {alone(*costs.reduction), costs.reduction->head_start,
                         costs.reduction->bytes};
  }
  return figures;
}

std::vector<PathShare> path_shares(const Outcome& outcome) {
  return outcome.facts ? outcome.facts->path : shares(outcome.critical_path);
}

}  // namespace stageline
