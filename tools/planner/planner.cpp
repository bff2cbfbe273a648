#include "tools/planner/planner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/planner/layer_groups.hpp"
#include "tools/planner/search.hpp"
#include "tools/planner/words.hpp"
#include "tools/study/evidence/ties.hpp"
#include "tools/study/figures/energy.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::planner {
namespace {

// What can be said of a verdict without its program: not what is recomputed, nor what waits.
TrainingRates rates_of(const Case& asked, const Verdict& verdict, const TrainingBudget& training) {
  Outcome outcome;
  outcome.step_time = verdict.step;
  outcome.microbatch_size = asked.model.batch;
  outcome.microbatches = asked.microbatches * asked.pipelines();
  outcome.copies = asked.copies();
  TrainingRates rates = training_rates(asked, outcome, training);
  rates.hardware_flops.reset();
  rates.hfu.reset();
  return rates;
}

PlanPoint point_of(const FrontPoint& found, Evaluator& evaluator, const TrainingBudget& training) {
  constexpr double seconds_an_hour = 3600;
  PlanPoint point;
  point.candidate = found.candidate;
  point.verdict = found.verdict;
  point.flags = found.flags;
  const Case asked = evaluator.case_of(found.candidate);
  point.rates = rates_of(asked, found.verdict, training);
  if (const auto price = hourly_price(asked, training.price_per_hour)) {
    point.dollars_step = *price * to_seconds(found.verdict.step) / seconds_an_hour;
  }
  return point;
}

// What half the network costs each point: --slow network:2 with its own cut.
void judge_on_half_network(const SettingRequest& base, std::vector<PlanPoint>& front) {
  SettingRequest request = base;
  request.slow.push_back({"network", 2});
  Evaluator evaluator(request);
  for (PlanPoint& point : front) {
    const Judgement found = evaluator.judge(point.candidate);
    if (!found.verdict) return;  // the machines share no network
    point.half_network = found.verdict->step;
  }
}

// Which point half the network makes the fastest on as many devices; empty: the same, or nothing
// is known of it.
std::string half_network_note(const std::vector<PlanPoint>& front) {
  const PlanPoint* best = nullptr;
  for (const PlanPoint& point : front) {
    if (!point.half_network || point.devices() != front.front().devices()) continue;
    if (best == nullptr || *point.half_network < *best->half_network) best = &point;
  }
  if (best == nullptr || best == &front.front()) return "";
  return fmt::format(
      "half network: where a byte between machines takes twice as long, point {} is the fastest of "
      "these, {}, and point 1 takes {}: measure the network before you take point 1",
      best - front.data() + 1, print(*best->half_network), print(*front.front().half_network));
}

// Programs alone say how many ranks a pipeline has.
void take_pipelines(PlanSpace& space) {
  const std::vector<ScheduleSpec>& schedules = space.schedules;
  const bool all_given =
      std::all_of(schedules.begin(), schedules.end(),
                  [](const ScheduleSpec& spec) { return spec.given != nullptr; });
  if (schedules.empty() || !all_given || !space.pipeline.empty()) return;
  for (const ScheduleSpec& spec : schedules) {
    const auto ranks = static_cast<int>(spec.given->program.devices.size());
    if (std::count(space.pipeline.begin(), space.pipeline.end(), ranks) == 0) {
      space.pipeline.push_back(ranks);
    }
  }
}

}  // namespace

std::string_view name(Objective objective) {
  switch (objective) {
    case Objective::time:
      return "time";
    case Objective::memory:
      return "memory";
    case Objective::devices:
      return "devices";
    case Objective::cost:
      return "cost";
  }
  return "";  // unreachable; g++ wants it
}

namespace {

// The points on as many devices as the first, with their places; none where one has no range:
// steps of language models alone have one.
std::vector<std::pair<AdvisedRow, std::size_t>> advised_points(
    const std::vector<PlanPoint>& front) {
  std::vector<std::pair<AdvisedRow, std::size_t>> advised;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const PlanPoint& point = front[i];
    if (!point.verdict.intervals.step) return {};
    if (point.devices() != front.front().devices()) continue;
    const Shape& shape = point.candidate.shape;
    const std::string schedule = title(point.candidate.spec);
    advised.push_back(
        {{fmt::format("point {}", i + 1), schedule, to_seconds(point.verdict.step),
          point.verdict.fullest(),
          fmt::format("{} {} {} {} {}", schedule, print(shape.degrees), zero_words(shape.degrees),
                      shape.microbatches, shape.microbatch_size)},
         i});
  }
  return advised;
}

void recommend_point(const PlanRequest& request, Plan& plan) {
  std::vector<AdvisedRow> rows;
  std::vector<std::size_t> places;
  for (auto& [row, place] : advised_points(plan.front)) {
    rows.push_back(std::move(row));
    places.push_back(place);
  }
  const std::vector<std::size_t> ties = rows_that_tie(rows);
  for (const std::size_t tie : ties) plan.tied.push_back(places[tie]);
  std::optional<Tie> tie;
  if (!request.within && request.objective == Objective::time && ties.size() > 1) {
    tie = Tie{places[best_of_ties(rows, ties)], ties.size()};
  }
  Recommendation found =
      recommend(plan.front, request.objective, request.within.value_or(default_within), tie);
  plan.recommended = found.index;
  plan.sentence = std::move(found.sentence);
  plan.ties =
      notes_on_advice(rows, plan.recommended ? fmt::format("point {}", *plan.recommended + 1) : "");
}

}  // namespace

Plan plan(const PlanRequest& asked) {
  PlanRequest request = asked;
  // The flags of candidates then say how many devices they take.
  if (!request.space.devices.empty()) request.setting.devices = request.space.devices;
  take_pipelines(request.space);
  const PlanGroups in = groups_for(request);
  const PlanRequest whole = request;
  if (in.groups > 0) request.setting.groups = std::make_shared<GroupedModels>(in.groups);
  Search search(request);
  search.walk();
  search.refine();
  if (search.front().empty()) search.find_nearest();
  Plan plan;
  plan.counts = search.counts();
  Front front = search.front();
  std::optional<PlanMissing> missing = search.missing();
  if (in.groups > 0) {
    WithAllLayers found = with_all_layers(search, whole, in);
    front = std::move(found.front);
    missing = found.missing;
    plan.counts.judged += found.judged;
    plan.notes.push_back(in.note());
  }
  for (const FrontPoint& found : front.points()) {
    plan.front.push_back(point_of(found, search.evaluator(), request.training));
  }
  plan.partial = search.partial();
  if (!plan.partial && in.groups == 0) judge_on_half_network(whole.setting, plan.front);
  recommend_point(request, plan);
  plan.bound = search.bound();
  if (!plan.front.empty()) plan.bound = std::min(plan.bound, plan.front.front().verdict.step);
  plan.behind = !plan.partial && search.left_behind();
  if (!plan.partial && !plan.behind) plan.counts.left = 0;  // as of the last report until then
  // Orders of micro-batches and placements on racks are tried with members of the front alone.
  const bool orders_left = !request.setting.lengths.empty() && !request.setting.lengths_order;
  plan.exhausted = !orders_left && !search.placements_left() && !plan.partial && !plan.behind &&
                   in.groups == 0 && (search.all_cuts() || !request.space.partitions.empty());
  if (plan.front.empty()) {
    plan.missing = missing;
    if (plan.missing) {
      plan.sentence = fmt::format("nothing fits: {}; the least, with {}",
                                  print_missing(plan.missing->need), plan.missing->flags);
    }
  }
  plan.dropped = search.take_dropped();
  for (const PlanPoint& point : plan.front) {
    const std::string note = chunks_note(search.evaluator().case_of(point.candidate));
    const bool known = std::count(plan.notes.begin(), plan.notes.end(), note) > 0;
    if (!note.empty() && !known) plan.notes.push_back(note);
  }
  if (std::string note = half_network_note(plan.front); !note.empty()) {
    plan.notes.push_back(std::move(note));
  }
  const bool unpriced = !plan.front.empty() && !plan.front.front().dollars_step;
  if (request.objective == Objective::cost && unpriced) {
    plan.notes.emplace_back(
        "cost: the devices have no price, so the least device time a step was looked for; give "
        "--price, or a cluster whose devices have one");
  }
  return plan;
}

}  // namespace stageline::planner
