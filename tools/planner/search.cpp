#include "tools/planner/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/check_point.hpp"
#include "tools/base/parallel.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/planner/shape_loads.hpp"

namespace stageline::planner {
namespace {

constexpr std::size_t shapes_at_a_time = 16;
constexpr std::size_t families_at_a_time = 32;
constexpr std::size_t shapes_expanded_at_a_time = 256;
/// Where all families together have no more cuts than that, every one is simulated.
constexpr std::int64_t most_cuts = 12'000;
/// Where the cuts of all families, times ranks and micro-batches, are no more than that, every knob
/// is tried with every other.
constexpr std::int64_t most_work_of_knobs = 100'000;
constexpr std::size_t most_nearly = 16;
/// After so many simulations, a search leaves what is estimated to be so many times as slow as what
/// it has to beat.
constexpr std::int64_t least_judged = 1'000;
constexpr std::int64_t least_judged_in_groups = 250;  // what is searched is approximate
constexpr std::int64_t most_nearest_in_groups = 150;  // beyond: of what may lack least
constexpr double far_behind = 1.15;
/// Where many candidates are nearly alike, the more were simulated beyond so many, the nearer they
/// must be estimated to what they have to beat, until none is looked at any more.
constexpr std::int64_t many_judged = 3'000;
constexpr std::int64_t most_judged = 8'000;
constexpr double far_behind_at_last = 1;
constexpr double one_later = 0.01;  // of an estimate
/// A family that searches its order comes later, since simulating one takes as long as judging a
/// hundred others; and where it is estimated to be so far behind what it has to beat, not at all.
/// 22 of 23 that changed the front of 11 questions were at most 1.1 % behind (README.md).
constexpr double takes_long = 1.05;
constexpr double search_behind = 1.02;
constexpr double last_share = 1e6;  // behind all others
/// Micro-batches for each pipeline rank up to which sequences are cut: with more, fill and drain
/// are below a third of a step, and a simulation takes as many times as long as there are slices.
constexpr std::int64_t most_cut = 2;
constexpr std::chrono::milliseconds between_reports{200};

// Whether two plain partitioners cut for the same shape and family.
bool differ_in_partitioner(const Candidate& one, const Candidate& other) {
  const auto is_plain = [](const Candidate& candidate) {
    return candidate.partition == "balanced" || candidate.partition == "blocks";
  };
  return is_plain(one) && is_plain(other) && one.partition != other.partition &&
         one.shape == other.shape && one.spec == other.spec &&
         one.recomputation == other.recomputation && one.offloading == other.offloading &&
         one.lengths_order == other.lengths_order;
}

// The order of a heap with the best in front.
template <class Node>
bool worse(const Node& a, const Node& b) {
  return std::tie(a.share, a.step, a.memory, a.shape, a.family) >
         std::tie(b.share, b.step, b.memory, b.shape, b.family);
}

}  // namespace

Search::Search(const PlanRequest& request)
    : request_(request),
      evaluator_(request.setting),
      grounds_(evaluator_),
      workers_(request.threads > 0 ? request.threads : available_cores()),
      began_(Clock::now()),
      reported_(began_),
      shapes_(shapes_of(request)),
      front_(request.slower_by) {}

bool Search::is_over() const {
  return (request_.stop != nullptr && request_.stop->load()) ||
         (request_.budget && Clock::now() - began_ >= *request_.budget);
}

bool Search::ended() {
  if (is_over()) partial_ = true;
  return partial_;
}

void Search::report(bool now) {
  if (!request_.progress) return;
  const Clock::time_point at = Clock::now();
  if (!now && at - reported_ < between_reports) return;
  reported_ = at;
  counts_.left = left_;
  counts_.bound = bound();
  request_.progress(counts_);
}

Time Search::bound() const {
  if (!rated_all_) return Time{};
  std::optional<Time> least = least_bound_;
  if (in_groups()) return least_work_.value_or(Time{});
  for (const Node& node : nodes_) {
    if (!cannot_fit(node)) least = std::min(least.value_or(Time::max()), node.step);
  }
  if (!front_.empty()) least = std::min(least.value_or(Time::max()), front_.fastest().verdict.step);
  return least.value_or(Time{});
}

const Search::FamilySet& Search::set_of(int shape) const {
  return sets_.at(nth(shapes_, shape).degrees.pipeline);
}

// Sequences are cut where micro-batches are few, unless a schedule that does it is named.
bool Search::is_tried(const Shape& shape, const Family& family) const {
  return !request_.space.schedules.empty() || !cuts_sequences(family.spec) ||
         shape.microbatches <= most_cut * shape.degrees.pipeline;
}

std::vector<Search::Estimated> Search::by_estimate(int shape, const Grounds::Found& found) const {
  const FamilySet& set = set_of(shape);
  const Estimates estimates(found.expected(), *found.model, nth(shapes_, shape), grounds_.reach(),
                            found.limit);
  std::vector<Estimated> order;
  for (std::size_t f = 0; f < set.families.size(); ++f) {
    if (!is_tried(nth(shapes_, shape), set.families[f])) continue;
    const bool searches = searches_order(set.families[f].spec);
    Estimated estimated{estimates.of(set.families[f], set.stages[f]), static_cast<int>(f)};
    estimated.later = estimated.estimate.step * (searches ? takes_long : 1);
    order.push_back(estimated);
  }
  std::sort(order.begin(), order.end(), [](const Estimated& a, const Estimated& b) {
    return std::tie(a.later, a.family) < std::tie(b.later, b.family);
  });
  return order;
}

bool Search::searches(const Node& node) const {
  return !node.is_shape() && searches_order(nth(set_of(node.shape).families, node.family).spec);
}

Corrections::Kind Search::kind_of(const Node& node) const {
  const Degrees& degrees = nth(shapes_, node.shape).degrees;
  return {degrees.pipeline, reduces_in_every_backward(degrees), node.family};
}

Corrections::Ground Search::ground_of(const Node& node) const {
  return {node.shape, nth(set_of(node.shape).like, node.family)};
}

bool Search::awaits(const Node& node, std::map<Corrections::Kind, int>& taken) const {
  if (!searches(node) || request_.exhaustive) return false;
  if (corrections_.searched(kind_of(node)) >= Corrections::least_known) return false;
  return ++taken[kind_of(node)] > Corrections::least_known;
}

std::vector<Search::Node> Search::take_probes(const Node& node) {
  const Corrections::Ground ground = ground_of(node);
  const int missing = Corrections::least_known - corrections_.fixed(ground);
  std::vector<Node> probes;
  if (missing <= 0) return probes;
  const auto behind = std::partition(nodes_.begin(), nodes_.end(), [&](const Node& other) {
    return other.is_shape() || other.shape != node.shape || searches(other) || cannot_fit(other) ||
           ground_of(other) != ground;
  });
  probes.assign(behind, nodes_.end());
  nodes_.erase(behind, nodes_.end());
  std::sort(probes.begin(), probes.end(), [](const Node& a, const Node& b) {
    return std::tie(a.alone, a.family) < std::tie(b.alone, b.family);
  });
  if (probes.size() <= static_cast<std::size_t>(missing)) corrections_.close_fixed(ground);
  const auto most = std::min(probes.size(), static_cast<std::size_t>(missing));
  nodes_.insert(nodes_.end(), probes.begin() + static_cast<std::ptrdiff_t>(most), probes.end());
  probes.resize(most);
  std::make_heap(nodes_.begin(), nodes_.end(), worse<Node>);
  return probes;
}

bool Search::learn(const Node& node, Time step) {
  if (node.alone <= 0) return false;
  const double ratio = to_seconds(step) / node.alone;
  if (searches(node)) return corrections_.learn_search(kind_of(node), ground_of(node), ratio);
  corrections_.learn_fixed(ground_of(node), ratio);
  return false;
}

// What has nothing to beat is never behind; of such, the fastest comes first.
void Search::weigh(Node& node) const {
  const int devices = nth(shapes_, node.shape).devices();
  const bool searched = searches(node);
  const double factor = searched ? corrections_.factor(kind_of(node), ground_of(node)) : 1;
  const double estimate = node.estimate * factor;
  if (const std::optional<double> to_beat = front_.to_beat(node.need, devices)) {
    node.share = estimate / *to_beat;
    if (!searched) return;
    const double alone = node.alone * factor / *to_beat;
    if (alone > search_behind) node.share = last_share + alone;
    return;
  }
  const double fastest = front_.empty() ? 1 : to_seconds(front_.fastest().verdict.step);
  node.share = estimate > 0 ? estimate / (estimate + fastest) : 0;
}

// Rates the shape, or each of its families.
Search::Rated Search::rated(int shape, bool families) {
  Rated rated;
  try {
    Grounds::Found found = grounds_.of(nth(shapes_, shape));
    const ShapeBound all = found.loads.shape();
    // Schedules without flush need not wait for a micro-batch's way.
    const Time least = request_.space.asynchronous ? Time{} : all.step;
    const Bytes memory = request_.space.asynchronous ? Bytes{} : all.memory;
    nth(limit_, shape) = found.limit;
    if (!families) {
      if (in_groups()) rated.work = found.loads.least_work(!request_.space.asynchronous);
      Node& node = rated.nodes.emplace_back(Node{least, memory, shape});
      const auto order = by_estimate(shape, found);
      if (!order.empty()) {
        node.estimate = std::max(to_seconds(least), order.front().later);
        node.need = std::max(static_cast<double>(memory.count), order.front().estimate.memory);
      }
      weigh(node);
      return rated;
    }
    grounds_.add_gathers(nth(shapes_, shape), found.loads, *found.model);
    const FamilySet& set = set_of(shape);
    // Families of one shape are much alike: each one later is as if it took longer, so that other
    // shapes have their turn.
    double later = 1;
    for (const auto& [estimate, f, ordered] : by_estimate(shape, found)) {
      const Family& family = nth(set.families, f);
      const ShapeBound bound =
          found.loads.family(family.spec, family.recomputation, family.offloading, found.limit);
      Node node{std::max(least, bound.fitting), std::max(memory, bound.memory), shape, f};
      node.alone = std::max(to_seconds(node.step), estimate.step);
      node.estimate = std::max(node.alone, ordered) * later;
      node.need = std::max(static_cast<double>(node.memory.count), estimate.memory);
      weigh(node);
      later += one_later;
      rated.nodes.push_back(node);
    }
  } catch (const std::exception& error) {  // of this shape; the search goes on
    rated.nodes.clear();
    rated.why_not = error.what();
  }
  return rated;
}

// The families of the pipeline degree of a shape, if it can be.
void Search::add_set(const Shape& shape, KnobReach reach) {
  const int pipeline = shape.degrees.pipeline;
  if (sets_.count(pipeline) > 0) return;
  std::shared_ptr<const Model> model;
  try {
    model = grounds_.of(shape).model;
  } catch (const UsageError&) {
    return;  // another one may say what the layers are
  } catch (const TraceError&) {
    return;
  }
  FamilySet& set = sets_[pipeline];
  set.layers = static_cast<int>(model->layers.size());
  set.cuts = first_cuts(request_.space, *model);
  const bool cuts = has_kernels(request_.setting.trace);
  for (Family& family : families_of(request_.space, *model, pipeline, cuts, reach)) {
    const int stages = stages_of(family.spec, pipeline);
    const bool placed = family.spec.scheduler->place != nullptr;
    if (!suits(family.spec, pipeline) || (placed && (stages == 0 || stages > set.layers))) {
      ++set.refused;
      continue;
    }
    set.all_cuts =
        std::min(most_cuts + 1, set.all_cuts + count_cuts(set.layers, stages, most_cuts));
    const auto like =
        std::find_if(set.families.begin(), set.families.end(), [&](const Family& other) {
          return other.recomputation == family.recomputation &&
                 other.offloading == family.offloading;
        });
    set.like.push_back(static_cast<int>(like - set.families.begin()));
    set.families.push_back(std::move(family));
    set.stages.push_back(stages);
  }
}

// The families of all pipeline degrees: with all their knobs where that is little work.
void Search::add_sets() {
  for (const Shape& shape : shapes_) add_set(shape, KnobReach::all);
  std::int64_t cuts = 0;
  std::int64_t work = 0;
  for (const Shape& shape : shapes_) {
    const auto set = sets_.find(shape.degrees.pipeline);
    if (set == sets_.end() || work > most_work_of_knobs) continue;
    cuts += set->second.all_cuts;
    work += set->second.all_cuts * shape.degrees.pipeline * shape.microbatches;
  }
  if (cuts <= most_cuts && work <= most_work_of_knobs && !in_groups()) return;
  sets_.clear();
  for (const Shape& shape : shapes_) add_set(shape, KnobReach::one);
}

// The bounds of all shapes, and the families of all pipeline degrees.
void Search::rate_shapes() {
  add_sets();
  limit_.resize(shapes_.size());
  std::vector<Rated> all(shapes_.size());
  in_parallel(all.size(), workers_,
              [&](std::size_t i) { all[i] = rated(static_cast<int>(i), false); });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].nodes.empty()) {
      ++counts_.refused;
      if (!refused_) refused_ = all[i].why_not;
      if (request_.keep_dropped) {
        dropped_.push_back({flags_of(request_.setting, shapes_[i]), all[i].why_not, {}});
      }
      continue;
    }
    if (in_groups()) least_work_ = std::min(least_work_.value_or(Time::max()), all[i].work);
    const FamilySet& set = set_of(static_cast<int>(i));
    counts_.refused += set.refused;
    if (set.families.empty()) continue;
    nodes_.push_back(all[i].nodes.front());
  }
  std::int64_t cuts = 0;
  for (const Node& node : nodes_)
    cuts = std::min(most_cuts + 1, cuts + set_of(node.shape).all_cuts);
  all_cuts_ = cuts <= most_cuts && request_.space.partitions.empty() && !in_groups();
  for (const Node& node : nodes_) left_ += candidates_in(node);
  std::make_heap(nodes_.begin(), nodes_.end(), worse<Node>);
  rated_all_ = true;
}

// Puts the families of the shapes into the heap.
void Search::expand(const std::vector<int>& shapes) {
  std::vector<Rated> all(shapes.size());
  in_parallel(all.size(), workers_, [&](std::size_t i) { all[i] = rated(shapes[i], true); });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].nodes.empty()) {
      ++counts_.refused;
      left_ -= candidates_in({{}, {}, shapes[i]});
      if (!refused_) refused_ = all[i].why_not;
      if (request_.keep_dropped) {
        dropped_.push_back(
            {flags_of(request_.setting, nth(shapes_, shapes[i])), all[i].why_not, {}});
      }
    }
    for (const Node& node : all[i].nodes) {
      nodes_.push_back(node);
      std::push_heap(nodes_.begin(), nodes_.end(), worse<Node>);
    }
  }
}

bool Search::cannot_fit(const Node& node) const {
  const std::optional<Bytes>& limit = nth(limit_, node.shape);
  return limit && node.memory > *limit;
}

// Counts those of a shape that was pruned, too.
std::int64_t Search::candidates_in(const Node& node) const {
  const FamilySet& set = set_of(node.shape);
  const auto of = [&](int stages) {
    return all_cuts_ ? std::max<std::int64_t>(1, count_cuts(set.layers, stages, most_cuts))
                     : static_cast<std::int64_t>(set.cuts.size());
  };
  const auto own = [&](const Family& family) {
    const Degrees& degrees = nth(shapes_, node.shape).degrees;
    return static_cast<std::int64_t>(
        own_cuts(request_.space, *family.spec.scheduler, degrees).size());
  };
  if (!node.is_shape())
    return of(nth(set.stages, node.family)) + own(nth(set.families, node.family));
  std::int64_t sum = 0;
  for (std::size_t f = 0; f < set.families.size(); ++f) {
    if (!is_tried(nth(shapes_, node.shape), set.families[f])) continue;
    sum += of(set.stages[f]) + own(set.families[f]);
  }
  return sum;
}

std::vector<Candidate> Search::candidates_of(const Node& node) const {
  const FamilySet& set = set_of(node.shape);
  const Family& family = nth(set.families, node.family);
  const int stages = nth(set.stages, node.family);
  std::vector<std::string> cuts = set.cuts;
  if (family.spec.given) {
    if (request_.space.partitions.empty()) cuts = {"balanced"};
  } else if (stages == 0) {
    cuts = {"balanced"};
  } else if (all_cuts_) {
    for (std::string& cut : planner::all_cuts(set.layers, stages)) {
      cuts.push_back(std::move(cut));
    }
  }
  for (std::string& cut :
       own_cuts(request_.space, *family.spec.scheduler, nth(shapes_, node.shape).degrees)) {
    cuts.push_back(std::move(cut));
  }
  std::vector<Candidate> candidates;
  for (std::string& cut : cuts) {
    candidates.push_back({nth(shapes_, node.shape), family.spec, family.recomputation,
                          family.offloading, std::move(cut)});
  }
  return candidates;
}

// Whether it changed the front.
bool Search::enter(const Candidate& candidate, const Judgement& judgement, Refined refined) {
  if (!judgement.verdict) {
    ++counts_.refused;
    if (!refused_) refused_ = judgement.why_not;
    if (request_.keep_dropped) {
      dropped_.push_back({flags_of(request_.setting, candidate), judgement.why_not, {}});
    }
    return false;
  }
  ++counts_.judged;
  const Verdict& verdict = *judgement.verdict;
  FrontPoint point{candidate, verdict, flags_of(request_.setting, candidate)};
  if (verdict.fit == Fit::no) {
    if (verdict.need && (!missing_ || verdict.need->missing() < missing_->need.missing())) {
      missing_ = PlanMissing{*verdict.need, point.flags};
      nearest_.push_back(candidate);
    }
    if (refined == Refined::no) return false;
    std::pair key(verdict.step, point.flags);
    nearly_.emplace(std::move(key), std::move(point));
    if (nearly_.size() > most_nearly) nearly_.erase(std::prev(nearly_.end()));
    return false;
  }
  if (!front_.insert(std::move(point))) return false;
  counts_.best = front_.fastest().verdict.step;
  counts_.best_flags = front_.fastest().flags;
  return true;
}

std::vector<std::optional<Judgement>> Search::judgements_of(
    const std::vector<const Candidate*>& candidates) {
  // Those of one family by the plain partitioners one after the other: their cut may be the same.
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // first and behind the last
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i > 0 && differ_in_partitioner(*candidates[i - 1], *candidates[i])) {
      parts.back().second = i + 1;
    } else {
      parts.emplace_back(i, i + 1);
    }
  }
  std::vector<std::optional<Judgement>> judgements(candidates.size());
  std::atomic<bool> late = false;
  in_parallel(parts.size(), workers_, [&](std::size_t part) {
    const auto [begin, end] = parts[part];
    const bool first = begin == 0 && counts_.judged == 0;  // an answer without any is of no use
    std::size_t i = begin;
    const CheckPoint* const outer = check_point();
    // One simulation of a large case takes many seconds: it is called off between its parts.
    const CheckPoint point = [&] {
      if (outer != nullptr) (*outer)();
      const bool stopped = request_.stop != nullptr && request_.stop->load();
      if (!stopped && ((first && i == 0) || (!late && !is_over()))) return;
      late = true;
      throw CalledOff();
    };
    const LooksAt looks(&point);
    std::vector<JudgedCut> others;
    try {
      for (; i < end; ++i) {
        look_at_check_point();
        judgements[i] = end == begin + 1 ? evaluator_.judge(*candidates[i])
                                         : evaluator_.judge(*candidates[i], others);
      }
    } catch (const CalledOff&) {
      if (!late) throw;  // by the caller
    }
  });
  if (late) partial_ = true;
  return judgements;
}

// Those that were not yet.
Search::Judged Search::judge(const std::vector<Candidate>& candidates, Refined refined) {
  std::vector<const Candidate*> fresh;
  for (const Candidate& candidate : candidates) {
    if (seen_.insert(flags_of(request_.setting, candidate)).second) fresh.push_back(&candidate);
  }
  const std::vector<std::optional<Judgement>> judgements = judgements_of(fresh);
  Judged judged;
  judged.steps.resize(candidates.size());
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (!judgements[i]) continue;
    if (enter(*fresh[i], *judgements[i], refined)) judged.changed = true;
    const auto at = static_cast<std::size_t>(fresh[i] - candidates.data());
    if (judgements[i]->verdict) judged.steps[at] = judgements[i]->verdict->step;
  }
  report(false);
  return judged;
}

void Search::note_bound(const Node& node) {
  if (!cannot_fit(node)) least_bound_ = std::min(least_bound_.value_or(Time::max()), node.step);
}

// Whether the candidates of a family are all that its bound speaks of, so that what was simulated
// of them says more: every cut, a fixed order of lengths, and where recomputing some stages may
// make one fit, that is fixed.
bool Search::is_whole(const Node& node) const {
  const bool every_cut = all_cuts_ || !request_.space.partitions.empty();
  const bool rebuilt_as_said = !request_.space.recomputation.empty() || !nth(limit_, node.shape);
  return every_cut && rebuilt_as_said && !orders_differ(nth(shapes_, node.shape));
}

// Counts and keeps what need not be simulated.
bool Search::pruned(const Node& node) {
  if (request_.exhaustive) return false;
  const bool too_large = cannot_fit(node);
  const int devices = nth(shapes_, node.shape).devices();
  if (!too_large && !front_.dominates(node.step, node.memory, devices) &&
      !front_.ends_before(node.step, devices)) {
    return false;
  }
  const std::int64_t candidates = candidates_in(node);
  counts_.pruned += candidates;
  drop(node, candidates);
  left_ -= candidates;
  if (too_large) {
    too_large_.push_back(node);
  } else {
    note_bound(node);
  }
  return true;
}

// What no candidate of which can enter the front any more.
void Search::prune_all() {
  // What is kept of them is in the order in which they would be looked at.
  if (request_.keep_dropped) {
    std::sort(nodes_.begin(), nodes_.end(),
              [](const Node& a, const Node& b) { return worse(b, a); });
  }
  nodes_.erase(
      std::remove_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return pruned(node); }),
      nodes_.end());
  for (Node& node : nodes_) weigh(node);
  std::make_heap(nodes_.begin(), nodes_.end(), worse<Node>);
}

// Simulates the families with the best estimates. False where none is left.
bool Search::walk_batch(std::size_t most) {
  std::vector<Candidate> batch;
  std::vector<Candidate> too_large;  // by their bounds; only an exhaustive search simulates them
  std::vector<std::pair<Node, std::size_t>> judged;  // with the first behind them in the batch
  std::vector<Node> awaiting;                        // until others of their family are judged
  std::map<Corrections::Kind, int> of_family;
  std::set<Corrections::Ground> probed;  // in this batch
  std::vector<Node> walked;
  std::size_t taken = 0;
  const auto take = [&](const Node& node) {
    const bool fits = !cannot_fit(node);
    walked.push_back(node);
    left_ -= candidates_in(node);
    std::vector<Candidate>& candidates = fits ? batch : too_large;
    for (Candidate& candidate : candidates_of(node)) candidates.push_back(std::move(candidate));
    if (fits) judged.emplace_back(node, batch.size());
    ++taken;
  };
  while (!nodes_.empty() && taken < most) {
    std::vector<int> shapes;
    while (!nodes_.empty() && nodes_.front().is_shape() &&
           shapes.size() < std::min(most, shapes_at_a_time)) {
      std::pop_heap(nodes_.begin(), nodes_.end(), worse<Node>);
      const Node node = nodes_.back();
      nodes_.pop_back();
      if (!pruned(node)) shapes.push_back(node.shape);
    }
    if (!shapes.empty()) {
      expand(shapes);
      continue;
    }
    if (nodes_.empty()) break;
    std::pop_heap(nodes_.begin(), nodes_.end(), worse<Node>);
    Node node = nodes_.back();
    nodes_.pop_back();
    if (pruned(node)) continue;
    if (searches(node) && !cannot_fit(node) && !request_.exhaustive) {
      const double before = node.share;
      weigh(node);  // by what was learned since
      if (node.share > before) {
        nodes_.push_back(node);
        std::push_heap(nodes_.begin(), nodes_.end(), worse<Node>);
        continue;
      }
      const Corrections::Ground ground = ground_of(node);
      if (probed.count(ground) == 0) {
        for (const Node& probe : take_probes(node)) {
          if (pruned(probe)) continue;
          take(probe);
          probed.insert(ground);
        }
      }
      if (probed.count(ground) > 0 || awaits(node, of_family)) {
        awaiting.push_back(node);
        continue;
      }
    }
    take(node);
  }
  for (const Node& node : awaiting) {
    nodes_.push_back(node);
    std::push_heap(nodes_.begin(), nodes_.end(), worse<Node>);
  }
  if (!too_large.empty()) judge(too_large, Refined::no);
  bool changed = false;
  if (!batch.empty()) {
    const Judged now = judge(batch);
    changed = now.changed;
    std::size_t begin = 0;
    for (const auto& [node, end] : judged) {
      std::optional<Time> step;  // of its fastest cut
      for (; begin < end; ++begin) {
        if (now.steps[begin]) step = std::min(step.value_or(Time::max()), *now.steps[begin]);
      }
      if (step && learn(node, *step)) changed = true;
    }
  }
  for (const Node& node : walked) {
    if (partial_ || !is_whole(node)) note_bound(node);
  }
  if (changed) prune_all();
  return !nodes_.empty();
}

// Bounds the families of all shapes that are left: most are pruned without being simulated, and the
// bound of all is that of families.
void Search::expand_all() {
  const auto families = std::stable_partition(nodes_.begin(), nodes_.end(),
                                              [](const Node& node) { return node.is_shape(); });
  std::vector<Node> shapes(nodes_.begin(), families);
  nodes_.erase(nodes_.begin(), families);
  std::make_heap(nodes_.begin(), nodes_.end(), worse<Node>);
  std::sort(shapes.begin(), shapes.end(), [](const Node& a, const Node& b) { return worse(b, a); });
  std::size_t at = 0;
  while (at < shapes.size() && !ended()) {
    std::vector<int> some;
    for (; at < shapes.size() && some.size() < shapes_expanded_at_a_time; ++at) {
      if (!pruned(shapes[at])) some.push_back(shapes[at].shape);
    }
    expand(some);
    report(false);
  }
  for (; at < shapes.size(); ++at) {
    nodes_.push_back(shapes[at]);
    std::push_heap(nodes_.begin(), nodes_.end(), worse<Node>);
  }
  prune_all();
}

// Whether no family is estimated to come near the front.
bool Search::all_behind() const {
  if (request_.thorough || request_.exhaustive || all_cuts_ || front_.empty()) return false;
  if (nodes_.empty() || nodes_.front().is_shape()) return false;
  if (nodes_.front().share >= last_share) return true;
  const std::int64_t least = in_groups() ? least_judged_in_groups : least_judged;
  if (counts_.judged < least) return false;
  const double many = std::clamp(static_cast<double>(counts_.judged - many_judged) /
                                     static_cast<double>(most_judged - many_judged),
                                 0.0, 1.0);
  return nodes_.front().share > far_behind + many * (far_behind_at_last - far_behind);
}

void Search::walk() {
  rate_shapes();
  report(true);
  // The first batches are small, so that there is an answer soon; one there is in any case.
  std::size_t most = 1;
  bool expanded = false;
  // Beyond the budget, until one could be simulated: what cannot run is no answer.
  const auto goes_on = [&] {
    const bool stopped = request_.stop != nullptr && request_.stop->load();
    return !ended() || (counts_.judged == 0 && !stopped);
  };
  while (walk_batch(most) && goes_on()) {
    if (most == families_at_a_time && !expanded) {
      expand_all();
      expanded = true;
    }
    most = std::min(2 * most, families_at_a_time);
    left_behind_ = all_behind();
    if (left_behind_) break;
  }
  counts_.left = left_;
  if (counts_.judged == 0 && counts_.pruned == 0 && !partial_ && refused_) {
    throw UsageError(*refused_);
  }
}

// Where nothing fits, what the bounds say cannot, the lightest first.
void Search::find_nearest() {
  std::make_heap(too_large_.begin(), too_large_.end(), [](const Node& a, const Node& b) {
    return std::tie(a.memory, a.step, a.shape, a.family) >
           std::tie(b.memory, b.step, b.shape, b.family);
  });
  const auto heavier = [](const Node& a, const Node& b) {
    return std::tie(a.memory, a.step, a.shape, a.family) >
           std::tie(b.memory, b.step, b.shape, b.family);
  };
  std::vector<Candidate> batch;
  const std::int64_t before = counts_.judged;
  while (!too_large_.empty() && !ended()) {
    if (in_groups() && counts_.judged - before >= most_nearest_in_groups) break;
    std::pop_heap(too_large_.begin(), too_large_.end(), heavier);
    const Node node = too_large_.back();
    too_large_.pop_back();
    if (missing_ && node.memory - *nth(limit_, node.shape) >= missing_->need.missing()) break;
    if (node.is_shape()) {
      for (const Node& family : rated(node.shape, true).nodes) {
        too_large_.push_back(family);
        std::push_heap(too_large_.begin(), too_large_.end(), heavier);
      }
      continue;
    }
    for (Candidate& candidate : candidates_of(node)) batch.push_back(std::move(candidate));
    judge(batch);
    batch.clear();
  }
}

}  // namespace stageline::planner
