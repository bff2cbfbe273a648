#include "tools/planner/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/base/parallel.hpp"
#include "tools/planner/shape_loads.hpp"

namespace stageline {
namespace {

constexpr std::size_t shapes_at_a_time = 32;
constexpr std::size_t nodes_at_a_time = 32;
/// Where all families together have no more cuts than that, every one is simulated.
constexpr std::int64_t most_cuts = 12'000;
constexpr std::chrono::milliseconds between_reports{200};

}  // namespace

Search::Search(const PlanRequest& request)
    : request_(request),
      evaluator_(request.setting),
      workers_(request.threads > 0 ? request.threads : available_cores()),
      began_(Clock::now()),
      reported_(began_),
      shapes_(shapes_of(request)) {}

bool Search::ended() {
  if (request_.stop != nullptr && request_.stop->load()) partial_ = true;
  if (request_.budget && Clock::now() - began_ >= *request_.budget) partial_ = true;
  return partial_;
}

void Search::report(bool now) {
  if (!request_.progress) return;
  const Clock::time_point at = Clock::now();
  if (!now && at - reported_ < between_reports) return;
  reported_ = at;
  counts_.left = static_cast<std::int64_t>(nodes_.size() + shapes_.size() - opened_);
  counts_.bound = bound();
  request_.progress(counts_);
}

Time Search::bound() const {
  // What was not looked at may be as fast as can be.
  if (opened_ < shapes_.size()) return Time{};
  Time least = least_bound_.value_or(Time{});
  if (!front_.empty()) least = std::min(least, front_.fastest().verdict.step);
  return least;
}

// Bounds the families of some shapes.
void Search::open(std::size_t from, std::size_t to) {
  struct Opened {
    OpenShape shape;
    std::vector<Node> nodes;
    std::int64_t refused = 0;
    std::string why_not;
    std::vector<PlanDropped> dropped;  // where they are wanted
  };
  std::vector<Opened> opened(to - from);
  in_parallel(to - from, workers_, [&](std::size_t i) {
    Opened& one = opened[i];
    one.shape.shape = shapes_[from + i];
    Candidate any;
    any.shape = one.shape.shape;
    any.spec = parse_schedules("1f1b").front();
    try {
      const Case asked = evaluator_.case_of(any);
      const ShapeLoads loads(asked);
      one.shape.layers = loads.layers();
      one.shape.families =
          families_of(request_.space, asked.model, one.shape.shape.degrees.pipeline);
      one.shape.cuts = first_cuts(request_.space, asked.model);
      for (const Device& device : asked.cluster.devices) {
        const std::optional<Bytes> usable = usable_memory(device);
        if (!usable || !asked.model.bytes_known) {
          one.shape.limit.reset();
          break;
        }
        one.shape.limit = std::max(one.shape.limit.value_or(Bytes{}), *usable);
      }
      for (std::size_t f = 0; f < one.shape.families.size(); ++f) {
        const Family& family = one.shape.families[f];
        try {
          const ShapeBound bound =
              loads.family(family.spec, family.recomputation, family.offloading);
          const int stages = stages_of(family.spec, one.shape.shape.degrees.pipeline);
          one.nodes.push_back({bound.step, bound.memory, 0, static_cast<int>(f), stages});
        } catch (const UsageError& error) {
          ++one.refused;
          if (one.why_not.empty()) one.why_not = error.what();
          if (request_.keep_dropped) one.dropped.push_back(refused(any, &family, error.what()));
        }
      }
    } catch (const UsageError& error) {
      ++one.refused;
      one.why_not = error.what();
    } catch (const TraceError& error) {
      ++one.refused;
      one.why_not = error.what();
    }
    if (request_.keep_dropped && one.shape.families.empty() && !one.why_not.empty()) {
      one.dropped.push_back(refused(any, nullptr, one.why_not));
    }
  });
  for (Opened& one : opened) {
    counts_.refused += one.refused;
    if (!refused_ && !one.why_not.empty()) refused_ = one.why_not;
    for (PlanDropped& dropped : one.dropped) dropped_.push_back(std::move(dropped));
    for (Node& node : one.nodes) {
      node.shape = static_cast<int>(open_.size());
      nodes_.push_back(node);
    }
    open_.push_back(std::move(one.shape));
  }
  opened_ = to;
}

bool Search::cannot_fit(const Node& node) const {
  const OpenShape& shape = nth(open_, node.shape);
  return shape.limit && node.memory > *shape.limit;
}

std::vector<std::string> Search::cuts_of(const Node& node) const {
  const OpenShape& shape = nth(open_, node.shape);
  if (node.stages == 0) return {"balanced"};
  std::vector<std::string> cuts = shape.cuts;
  if (!all_cuts_ || !request_.space.partitions.empty()) return cuts;
  for (std::string& cut : stageline::all_cuts(shape.layers, node.stages)) {
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

std::vector<Candidate> Search::candidates_of(const Node& node) const {
  const OpenShape& shape = nth(open_, node.shape);
  const Family& family = nth(shape.families, node.family);
  std::vector<Candidate> candidates;
  for (std::string& cut : cuts_of(node)) {
    candidates.push_back(
        {shape.shape, family.spec, family.recomputation, family.offloading, std::move(cut)});
  }
  return candidates;
}

// Whether it changed the front.
bool Search::enter(const Candidate& candidate, const Judgement& judgement) {
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
    if (verdict.need && (!missing_ || verdict.need->missing() < missing_->bytes)) {
      missing_ = PlanMissing{verdict.need->missing(), verdict.need->place, point.flags};
    }
    constexpr std::size_t most_nearly = 16;
    nearly_.emplace(std::pair(verdict.step, point.flags), std::move(point));
    if (nearly_.size() > most_nearly) nearly_.erase(std::prev(nearly_.end()));
    return false;
  }
  const std::string flags = point.flags;
  if (!front_.insert(std::move(point))) return false;
  counts_.best = front_.fastest().verdict.step;
  counts_.best_flags = front_.fastest().flags;
  return true;
}

// Those that were not yet; whether they changed the front.
bool Search::judge(const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> fresh;
  for (const Candidate& candidate : candidates) {
    if (seen_.insert(flags_of(request_.setting, candidate)).second) fresh.push_back(&candidate);
  }
  std::vector<std::optional<Judgement>> judgements(fresh.size());
  std::atomic<bool> late = false;
  in_parallel(fresh.size(), workers_, [&](std::size_t i) {
    // Of a first answer, at least one.
    if (late || (i > 0 && request_.budget && Clock::now() - began_ >= *request_.budget) ||
        (request_.stop != nullptr && request_.stop->load())) {
      late = true;
      return;
    }
    judgements[i] = evaluator_.judge(*fresh[i]);
  });
  bool changed = false;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (!judgements[i]) {
      partial_ = true;
      continue;
    }
    if (enter(*fresh[i], *judgements[i])) changed = true;
  }
  report(false);
  return changed;
}

// The unpruned nodes with the best bounds. False where none is left.
bool Search::walk_batch() {
  const auto worse = [](const Node& a, const Node& b) {
    return std::tie(a.step, a.memory, a.shape, a.family) >
           std::tie(b.step, b.memory, b.shape, b.family);
  };
  std::vector<Candidate> batch;
  std::size_t taken = 0;
  while (!nodes_.empty() && taken < nodes_at_a_time) {
    std::pop_heap(nodes_.begin(), nodes_.end(), worse);
    const Node node = nodes_.back();
    nodes_.pop_back();
    const int devices = nth(open_, node.shape).shape.devices();
    if (!request_.exhaustive) {
      if (cannot_fit(node)) {
        ++counts_.pruned;
        drop(node);
        too_large_.push_back(node);
        continue;
      }
      if (front_.dominates(node.step, node.memory, devices)) {
        ++counts_.pruned;
        drop(node);
        continue;
      }
    }
    for (Candidate& candidate : candidates_of(node)) batch.push_back(std::move(candidate));
    ++taken;
  }
  if (!batch.empty()) judge(batch);
  return !nodes_.empty();
}

void Search::walk() {
  const auto worse = [](const Node& a, const Node& b) {
    return std::tie(a.step, a.memory, a.shape, a.family) >
           std::tie(b.step, b.memory, b.shape, b.family);
  };
  while (opened_ < shapes_.size() && !ended()) {
    const std::size_t to = std::min(opened_ + shapes_at_a_time, shapes_.size());
    const std::size_t had = nodes_.size();
    open(opened_, to);
    static_cast<void>(had);
    report(false);
  }
  std::int64_t cuts = 0;
  for (const Node& node : nodes_) {
    if (!cannot_fit(node) && (!least_bound_ || node.step < *least_bound_)) least_bound_ = node.step;
    if (cuts <= most_cuts && node.stages > 0) {
      cuts += count_cuts(nth(open_, node.shape).layers, node.stages, most_cuts);
    }
  }
  all_cuts_ = cuts <= most_cuts && request_.space.partitions.empty();
  std::make_heap(nodes_.begin(), nodes_.end(), worse);
  while (!ended() && walk_batch()) {
  }
  if (counts_.judged == 0 && counts_.pruned == 0 && !partial_ && refused_) {
    throw UsageError(*refused_);
  }
}

// Where nothing fits, those that the bounds say cannot, the lightest first.
void Search::find_nearest() {
  std::sort(too_large_.begin(), too_large_.end(), [](const Node& a, const Node& b) {
    return std::tie(a.memory, a.step, a.shape, a.family) <
           std::tie(b.memory, b.step, b.shape, b.family);
  });
  std::size_t at = 0;
  while (at < too_large_.size() && !ended()) {
    std::vector<Candidate> batch;
    for (std::size_t taken = 0; at < too_large_.size() && taken < nodes_at_a_time; ++at, ++taken) {
      const Node& node = too_large_[at];
      const Bytes least = node.memory - *nth(open_, node.shape).limit;
      if (missing_ && least >= missing_->bytes) {
        at = too_large_.size();
        break;
      }
      for (Candidate& candidate : candidates_of(node)) batch.push_back(std::move(candidate));
    }
    if (!batch.empty()) judge(batch);
  }
}

std::vector<std::string> Search::notes() const {
  std::vector<std::string> all;
  return all;
}

}  // namespace stageline
