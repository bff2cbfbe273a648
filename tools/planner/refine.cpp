// Changes what was found: knobs one step further, recomputation stage by stage, cuts.
#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/base/check_point.hpp"
#include "tools/base/parallel.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/planner/cuts/cut_search.hpp"
#include "tools/planner/search.hpp"

namespace stageline::planner {
namespace {

constexpr std::size_t members_refined = 8;   // of the front, the fastest
constexpr std::size_t lightest_refined = 2;  // of the front, with the least memory
constexpr std::size_t members_cut = 4;
// Stages times micro-batches times cuts that are simulated of a member, and the bounds of these.
constexpr int cut_work = 100'000;
constexpr int fewest_cuts = 32;
constexpr int most_cuts_of_a_member = 200;
constexpr int most_cuts_in_groups = 8;  // there, cuts are approximate
constexpr int most_rounds = 8;

// Recomputation of all stages up to one, which hold most.
Recomputation up_to(const StageRecomputation& how, int last) {
  Recomputation rebuilt;
  if (last >= 0) rebuilt.parts.push_back({how, {{0, last}}});
  return rebuilt;
}

// The last stage of "how@0-last"; empty for anything else.
std::optional<int> last_rebuilt(const Recomputation& rebuilt) {
  if (rebuilt.parts.size() != 1 || rebuilt.parts[0].stages.size() != 1) return std::nullopt;
  const NumberRange range = rebuilt.parts[0].stages[0];
  if (range.first != 0) return std::nullopt;
  return range.last;
}

int cuts_of(const Candidate& candidate) {
  const int stages = std::max(1, stages_of(candidate.spec, candidate.shape.degrees.pipeline));
  const int cuts = cut_work / stages / std::max(1, candidate.shape.microbatches);
  return std::clamp(cuts, fewest_cuts, most_cuts_of_a_member);
}

}  // namespace

bool Search::orders_differ(const Shape& shape) const {
  const SettingRequest& request = request_.setting;
  if (request.lengths.empty() || request.lengths_order) return false;
  const std::vector<Documents> lengths = lengths_of(request.lengths, shape.microbatches, 1);
  return std::any_of(lengths.begin(), lengths.end(),
                     [&](const Documents& one) { return one != lengths.front(); });
}

std::vector<Candidate> Search::neighbours(const FrontPoint& point) {
  std::vector<Candidate> near;
  const Candidate& here = point.candidate;
  if (request_.space.schedules.empty()) {
    for (ScheduleSpec& spec : neighbours_of(here.spec)) {
      Candidate& other = near.emplace_back(here);
      other.spec = std::move(spec);
      // A cut into so many stages is not one into others.
      if (request_.space.partitions.empty()) other.partition = "balanced";
    }
  }
  if (orders_differ(here.shape)) {
    for (const LengthsOrder order : all_lengths_orders) {
      if (order == here.lengths_order.value_or(LengthsOrder::given)) continue;
      near.emplace_back(here).lengths_order = order;
    }
  }
  if (std::string other = evaluator_.other_placement(here.shape); !other.empty()) {
    placements_left_ = true;
    near.emplace_back(here).shape.placement = std::move(other);
  }
  const std::optional<int> last = last_rebuilt(here.recomputation);
  if (last && request_.space.recomputation.empty()) {
    for (const int other : {*last - 1, *last + 1}) {
      Candidate& changed = near.emplace_back(here);
      changed.recomputation = up_to(here.recomputation.parts[0].how, other);
    }
  }
  return near;
}

// With the same ranks and schedule whatever may hold less, or as much and be faster: each level of
// ZeRO, the next smaller micro-batches, sequence parallelism, each recomputation.
std::vector<Candidate> Search::lighter(const FrontPoint& point) const {
  const Candidate& here = point.candidate;
  const PlanSpace& space = request_.space;
  const Degrees& degrees = here.shape.degrees;
  std::vector<Shape> shapes{here.shape};
  const auto add = [&](const Shape& shape) {
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  };
  // The nearest shape with smaller micro-batches among those that are searched.
  const Shape* smaller = nullptr;
  for (const Shape& shape : shapes_) {
    Degrees same = shape.degrees;
    same.zero = degrees.zero;
    same.zero_every = degrees.zero_every;
    same.shard_group = degrees.shard_group;
    if (same != degrees) continue;
    if (shape.microbatch_size == here.shape.microbatch_size) add(shape);
    const bool alike = shape.degrees == degrees &&
                       shape.sequence_parallel == here.shape.sequence_parallel &&
                       shape.cp_comm_type == here.shape.cp_comm_type;
    if (!alike || shape.microbatch_size >= here.shape.microbatch_size) continue;
    if (smaller == nullptr || shape.microbatch_size > smaller->microbatch_size) smaller = &shape;
  }
  if (smaller != nullptr) add(*smaller);
  // ZeRO 2, which the shapes leave out: it reduces in every backward, or is ZeRO 1.
  const Degrees& given = request_.setting.degrees;
  const bool any_zero = space.zero.empty() && given.zero == Zero::none;
  if (any_zero && degrees.data * degrees.context > 1) {
    Shape divided = here.shape;
    divided.degrees.zero = Zero::gradients;
    divided.degrees.shard_group = given.shard_group;
    divided.degrees.zero_every = every_that_divides(given, degrees.pipeline);
    if (reduces_in_every_backward(divided.degrees)) add(divided);
  }
  std::vector<Candidate> near;
  const auto set = sets_.find(degrees.pipeline);
  if (set == sets_.end()) return near;
  for (const Shape& shape : shapes) {
    for (const Family& family : set->second.families) {
      if (family.spec != here.spec) continue;
      Candidate& other = near.emplace_back(here);
      other.shape = shape;
      other.shape.placement = here.shape.placement;
      other.recomputation = family.recomputation;
      other.offloading = family.offloading;
    }
  }
  return near;
}

// The fewest stages to recompute with which what lacks little fits: by bisection, since more of
// them never hold more.
bool Search::fit_by_recomputing() {
  if (!request_.space.recomputation.empty()) return false;
  struct Trial {
    Candidate candidate;
    StageRecomputation how;
    int low = -1;  // does not fit
    int high = 0;  // fits, or is not known
    int stages = 0;
  };
  std::vector<Trial> trials;
  for (const auto& [key, point] : nearly_) {
    const Candidate& lacking = point.candidate;
    if (!lacking.recomputation.parts.empty()) continue;
    if (!front_.empty() && point.verdict.step >= front_.fastest().verdict.step) break;
    const int stages = stages_of(lacking.spec, lacking.shape.degrees.pipeline);
    if (stages < 2) continue;
    for (const StageRecomputation& how :
         {StageRecomputation{Rebuild::selective, 1}, StageRecomputation{Rebuild::every, 1},
          StageRecomputation{Rebuild::full, 1}}) {
      trials.push_back({lacking, how, -1, stages - 1, stages});
    }
  }
  bool changed = false;
  while (!ended()) {
    std::vector<Candidate> batch;
    std::vector<Trial*> open;
    for (Trial& trial : trials) {
      if (trial.high - trial.low <= 1) continue;
      const int middle = trial.low + (trial.high - trial.low) / 2;
      Candidate& candidate = batch.emplace_back(trial.candidate);
      candidate.recomputation = up_to(trial.how, middle);
      open.push_back(&trial);
    }
    if (batch.empty()) break;
    std::vector<const Candidate*> asked;
    for (const Candidate& candidate : batch) asked.push_back(&candidate);
    const std::vector<std::optional<Judgement>> judgements = judgements_of(asked);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Trial& trial = *open[i];
      if (!judgements[i]) continue;  // the search has ended
      const std::optional<Verdict>& verdict = judgements[i]->verdict;
      const bool fits = verdict && verdict->fit != Fit::no;
      (fits ? trial.high : trial.low) = trial.low + (trial.high - trial.low) / 2;
      if (!verdict) trial.low = trial.high;  // it cannot be rebuilt so
      if (seen_.insert(flags_of(request_.setting, batch[i])).second &&
          enter(batch[i], *judgements[i])) {
        changed = true;
      }
    }
    report(false);
  }
  return changed;
}

// The cuts of the fastest members, each by simulation.
bool Search::search_cuts() {
  if (!request_.space.partitions.empty() || all_cuts_) return false;
  const std::vector<FrontPoint> members = front_.points();
  std::vector<std::optional<Judgement>> found(std::min(members_cut, members.size()));
  std::vector<Candidate> cut(found.size());
  std::atomic<bool> late = false;
  in_parallel(found.size(), workers_, [&](std::size_t i) {
    cut[i] = members[i].candidate;
    if (cut[i].spec.scheduler->place == nullptr) return;
    const CheckPoint* const outer = check_point();
    const CheckPoint point = [&] {
      if (outer != nullptr) (*outer)();
      if (!is_over()) return;
      late = true;
      throw CalledOff();
    };
    const LooksAt looks(&point);
    try {
      const int most =
          in_groups() ? std::min(cuts_of(cut[i]), most_cuts_in_groups) : cuts_of(cut[i]);
      const SearchedCut searched = search_cut(evaluator_.case_of(cut[i]), evaluator_.judge(), most);
      cut[i].partition = searched.partition;
      found[i] = Judgement{searched.verdict, {}};
    } catch (const std::exception&) {
      found[i].reset();  // it stays with the cut that it has
    } catch (const CalledOff&) {
      if (!late) throw;  // by the caller
    }
  });
  if (late) partial_ = true;
  bool changed = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    if (seen_.insert(flags_of(request_.setting, cut[i])).second && enter(cut[i], *found[i])) {
      changed = true;
    }
  }
  report(false);
  return changed;
}

void Search::refine() {
  fit_by_recomputing();
  for (int round = 0; round < most_rounds && !ended(); ++round) {
    std::vector<Candidate> near;
    const std::vector<FrontPoint>& points = front_.points();
    for (std::size_t i = 0; i < std::min(members_refined, points.size()); ++i) {
      for (Candidate& candidate : neighbours(points[i])) near.push_back(std::move(candidate));
    }
    // The end with the least memory, which bounds and estimates of a step say least of.
    for (std::size_t i = 0; i < std::min(lightest_refined, points.size()); ++i) {
      for (Candidate& candidate : lighter(points[points.size() - 1 - i])) {
        near.push_back(std::move(candidate));
      }
    }
    if (!judge(near).changed) break;
  }
  if (!ended()) search_cuts();
}

}  // namespace stageline::planner
