// What follows from the loads of a shape's layers for any schedule on any cut.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/planner/shape_loads.hpp"

namespace stageline::planner {
namespace {

// What rounding_share may take off a time, as a share of it.
constexpr double rounding_share = 1e-9;

Time whole(double picoseconds) {
  const double least = std::floor(picoseconds * (1 - rounding_share));
  return least > 0 ? Time{static_cast<std::int64_t>(std::min(least, 4e18))} : Time{};
}

Bytes whole_bytes(double bytes) {
  const double least = std::floor(bytes * (1 - rounding_share));
  return least > 0 ? Bytes{static_cast<std::int64_t>(std::min(least, 4e18))} : Bytes{};
}

}  // namespace

// What the ops of slices of a sequence may lose by rounding.
double ShapeLoads::rounding_of_slices(const Family& family) const {
  return (family.chunks - 1) * 4.0 * microbatches_ * family.stages;
}

double ShapeLoads::work(const Sums& sums) const {
  return (microbatches_ * sums.load.back() + sums.update) / rates_;
}

// The least T for which so many stages cover the layers, each at most T long. Stages as long as T
// allows do not cover them until one of them has room for one more layer: so T is a time at which
// one has, and few of these are between what bisection knows.
double ShapeLoads::slowest_stage(const Sums& sums, int stages, double microbatches) const {
  const std::vector<double>& load = sums.load;
  double low = microbatches * load.back() / stages;
  double longest = 0;
  for (std::size_t l = 0; l < layer_.size(); ++l) {
    longest = std::max(longest, microbatches * (load[l + 1] - load[l]));
  }
  // Stages without room for one more layer are as long as the mean.
  double high = low + longest;
  low = std::max(low, longest);
  // The least T at which a stage is longer than `limit` lets it be; empty: they cover the layers.
  const auto next = [&](double limit) -> std::optional<double> {
    double least = std::numeric_limits<double>::max();
    std::size_t begin = 0;
    for (int stage = 0; stage < stages && begin + 1 < load.size(); ++stage) {
      const double most = load[begin] + limit / microbatches * (1 + 1e-15);
      const auto end =
          std::upper_bound(load.begin() + static_cast<std::ptrdiff_t>(begin), load.end(), most);
      if (end != load.end()) least = std::min(least, microbatches * (*end - load[begin]));
      begin = as_size(end - load.begin() - 1);
    }
    if (begin + 1 == load.size()) return std::nullopt;
    return least;
  };
  for (int i = 0; i < 40 && high - low > rounding_share * high; ++i) {
    const std::optional<double> longer = next(low);
    if (!longer) return low;
    low = std::max(low, *longer);
    const double middle = (low + high) / 2;
    if (const std::optional<double> above = next(middle)) {
      low = std::max(middle, *above);
    } else {
      high = middle;
    }
  }
  return std::min(low, high);
}

// The least T for which stages s with ahead(s) + microbatches · load(s) ≤ T cover the layers: the
// first ones as long as they can be, since that leaves least to the others.
double ShapeLoads::filled(const Sums& sums, int stages) const {
  const std::vector<double>& load = sums.load;
  const std::vector<double>& way = sums.way;
  const auto enough = [&](double limit) {
    std::size_t begin = 0;
    for (int stage = 0; stage < stages && begin + 1 < load.size(); ++stage) {
      const double left = limit - way[begin];
      if (left < 0) return false;
      const double most = load[begin] + left / microbatches_ * (1 + 1e-15);
      const auto end =
          std::upper_bound(load.begin() + static_cast<std::ptrdiff_t>(begin), load.end(), most);
      if (as_size(end - load.begin() - 1) == begin) return false;
      begin = as_size(end - load.begin() - 1);
    }
    return begin + 1 == load.size();
  };
  double low = microbatches_ * load.back() / stages;
  double high = (microbatches_ + 1) * load.back() + way.back();
  for (int i = 0; i < 40 && high - low > rounding_share * high; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return low;
}

// Stage s has s layers before it at least. A device waits for its first stage's F, and its last B
// is followed by those of the stages before; a next step begins behind the last of them. So do the
// devices on the whole, however long each of their stages is.
double ShapeLoads::looped(const Family& family, const Sums& sums) const {
  double idle = 0;
  for (const int stage : family.first_stage) idle += nth(sums.way, stage);
  return (microbatches_ * sums.load.back() + idle * family.least_share) / devices_;
}

void ShapeLoads::bound_time(const Family& family, ShapeBound& bound) const {
  const Sums sums = sums_of(family);
  double step = 0;
  const auto raise = [&](double to, auto&& why) {
    if (to <= step) return;
    step = to;
    bound.why = why();
  };
  // In a pair, the longer op and the rest of the shorter one are at least this share of both. Where
  // transfers alone are hidden, the sums are without them.
  const double alone = family.traits.pairs && pair_overlap_ ? 1 - *pair_overlap_ / 2 : 1;
  const double busy = work(sums) * alone;
  raise(busy, [&] {
    return fmt::format("the work of {:g} micro-batches on {} devices takes {} on each",
                       microbatches_, devices_, print(whole(busy)));
  });
  if (family.flushed && !family.apart) {
    const double turns = std::ceil(microbatches_ / family.most_replicas);
    const double slowest = slowest_stage(sums, family.stages, turns) * alone;
    raise(slowest, [&] {
      return fmt::format("of {} stages, however cut, the slowest takes {}", family.stages,
                         print(whole(slowest)));
    });
  }
  if (family.flushed && !family.any_chunks) {
    const double turns =
        family.traits.under_way > 0 ? std::ceil(microbatches_ / family.traits.under_way) : 1;
    const double way = turns * sums.way.back() * family.least_share * alone;
    raise(way, [&] {
      return fmt::format("{:g} micro-batches, one behind the other, take {} forward and back",
                         turns, print(whole(way)));
    });
  }
  const bool whole_backwards = family.traits.backward == ScheduleTraits::Backward::whole;
  const bool equal = rates_ >= devices_;  // devices
  if (whole_backwards && family.flushed && !family.apart && is_chain_ && equal &&
      family.first_stage.size() == as_size(devices_)) {
    const double filling = looped(family, sums) * alone;
    raise(filling, [&] {
      return fmt::format("filling and draining {} devices makes it {} on the mean", devices_,
                         print(whole(filling)));
    });
  }
  if (family.straight && family.flushed && !family.apart) {
    // A device that leaves W for later goes on with the next step's forwards no sooner.
    Sums passing = sums;
    if (family.traits.backward != ScheduleTraits::Backward::whole) {
      for (std::size_t l = 0; l < layer_.size(); ++l) {
        const LayerLoad& layer = layer_[l];
        const double halves = layer.input_grad + layer.weight_grad;
        const double left = family.traits.backward == ScheduleTraits::Backward::apart
                                ? layer.weight_grad
                                : std::max(0.0, std::min(layer.backward, halves) -
                                                    std::min(layer.backward, layer.input_grad));
        passing.load[l + 1] = passing.load[l] + (sums.load[l + 1] - sums.load[l]) - left;
      }
    }
    for (double& way : passing.way) way *= family.least_share;
    const double filling = filled(passing, family.stages) * alone;
    raise(filling, [&] {
      return fmt::format("filling and draining {} stages makes it {}", family.stages,
                         print(whole(filling)));
    });
  }
  bound.step = whole(step - rounding_of_slices(family));
}

double ShapeLoads::held(const Family& family, const LayerLoad& layer) {
  return layer.state + (family.copies ? layer.copy_state : 0);
}

// The least M for which straight stages with in-flight · stash + state ≤ M cover the layers: from
// the last one, which has fewest in flight, each as long as it can be.
double ShapeLoads::fullest_stage(const Family& family) const {
  const int stages = family.stages;
  std::vector<double> state{0};
  std::vector<double> kept{0};  // of each micro-batch in flight
  std::vector<double> made{0};  // of the one whose backward runs
  for (const LayerLoad& layer : layer_) {
    const double keeps =
        family.partly_rebuilt || family.rebuild == Rebuild::full || family.rebuild == Rebuild::every
            ? 0
        : family.rebuild == Rebuild::selective ? layer.stash_kept
                                               : layer.stash;
    const bool at_once = !family.partly_rebuilt && family.rebuild != Rebuild::every &&
                         family.rebuild != Rebuild::selective;
    state.push_back(state.back() + held(family, layer));
    kept.push_back(kept.back() + keeps);
    made.push_back(made.back() + (at_once ? layer.stash : keeps));
  }
  std::vector<int> more;  // in flight, beside that one
  for (int stage = 0; stage < stages; ++stage) {
    more.push_back(least_in_flight(family.traits, stage, stages, static_cast<int>(microbatches_)) -
                   1);
  }
  const auto need = [&](std::size_t begin, std::size_t end, int stage) {
    return state[end] - state[begin] +
           (nth(more, stage) * (kept[end] - kept[begin]) + made[end] - made[begin]) / family.chunks;
  };
  const auto enough = [&](double limit) {
    std::size_t end = layer_.size();
    for (int stage = stages; stage-- > 0 && end > 0;) {
      // The first layer of the longest stage that fits.
      std::size_t low = 0;
      std::size_t high = end;
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (need(middle, end, stage) <= limit) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      end = low;
    }
    return end == 0;
  };
  double low = 0;
  double high = need(0, layer_.size(), 0);
  if (!(high > 0)) return 0;
  low = std::min(high, state.back() / stages);
  for (int i = 0; i < 40 && high - low > rounding_share * high; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return low;
}

double ShapeLoads::all_state(const Family& family) const {
  double state = 0;
  for (const LayerLoad& layer : layer_) state += held(family, layer);
  return state * (family.apart ? 1 : family.least_replicas);
}

namespace {

// What recomputing part of a layer saves, in byte · picoseconds, for so many picoseconds.
struct Saving {
  double saved = 0;
  double costs = 0;
};

// The least T with T ≥ busy + again · each and T ≥ (held − what so much recomputing saves) · each /
// room: where most is saved first.
double step_with_room(double busy, double held, double room, double each,
                      std::vector<Saving>& savings) {
  std::sort(savings.begin(), savings.end(),
            [](const Saving& a, const Saving& b) { return a.saved * b.costs > b.saved * a.costs; });
  double needs = held / room;
  for (const Saving& saving : savings) {
    if (needs <= busy) return busy;
    const double longer = saving.costs * each;
    const double less = saving.saved / room;
    if (needs - less < busy + longer) return busy + longer * (needs - busy) / (longer + less);
    busy += longer;
    needs -= less;
  }
  return std::max(busy, needs);
}

}  // namespace

// All devices together have room for so many bytes of stashes at any time. Each stash is held from
// its F to the end of its I, and between them is the way of its micro-batch through all that is
// behind. To hold less, some layers may be recomputed, in whole or their scores alone.
Time ShapeLoads::fitting(const Family& family, Bytes limit) const {
  const bool kept = family.rebuild == Rebuild::none || family.rebuild == Rebuild::selective;
  const bool known = kept && !family.partly_rebuilt && family.flushed && !family.apart &&
                     !family.any_chunks && is_chain_;
  const double room = static_cast<double>(limit.count) * devices_ - all_state(family);
  if (!known || room <= 0) return Time{};
  const Sums sums = sums_of(family);
  const double alone = family.traits.pairs && pair_overlap_ ? 1 - *pair_overlap_ / 2 : 1;
  double stashes = 0;  // byte · picoseconds of a step
  std::vector<Saving> savings;
  for (std::size_t l = 0; l < layer_.size(); ++l) {
    const LayerLoad& layer = layer_[l];
    const double way = microbatches_ * (sums.way.back() - sums.way[l]) * family.least_share * alone;
    if (family.rebuild == Rebuild::selective) {
      stashes += layer.stash_kept * way;
      continue;
    }
    const Saving all{layer.stash * way, layer.recompute_full};
    const Saving scores{(layer.stash - layer.stash_kept) * way, layer.recompute_selective};
    if (all.costs <= 0) continue;  // nothing is lost by it
    stashes += all.saved;
    if (scores.saved * all.costs > all.saved * scores.costs && scores.costs < all.costs) {
      savings.push_back(scores);
      savings.push_back({all.saved - scores.saved, all.costs - scores.costs});
    } else {
      savings.push_back(all);
    }
  }
  const double busy = work(sums) * alone;
  const double step = step_with_room(busy, stashes, room, microbatches_ / rates_, savings);
  return whole(step - rounding_of_slices(family));
}

void ShapeLoads::bound_memory(const Family& family, ShapeBound& bound) const {
  double most = 0;
  const auto raise = [&](double to, auto&& where) {
    if (to <= most) return;
    most = to;
    bound.where = where();
  };
  double least_workspace = layer_.empty() ? 0 : layer_.front().workspace;
  for (const LayerLoad& layer : layer_) {
    least_workspace = std::min(least_workspace, layer.workspace);
  }
  raise(all_state(family) / devices_ +
            (family.apart || family.any_chunks || family.chunks > 1 ? 0 : least_workspace),
        [&] { return fmt::format("{}, its part of the weights and their state", first_device_); });
  if (family.apart) {
    bound.memory = whole_bytes(most);
    return;
  }
  for (std::size_t l = 0; l < layer_.size(); ++l) {
    const double stash = family.any_chunks ? 0 : layer_[l].stash / family.chunks;
    raise(held(family, layer_[l]) + stash,
          [&] { return fmt::format("the device of layer {}", names_[l]); });
  }
  if (family.straight && family.least_share > 0) {
    raise(fullest_stage(family),
          [&] { return fmt::format("the fullest of {} stages, however cut", family.stages); });
  }
  bound.memory = whole_bytes(most - family.chunks);
}

ShapeBound ShapeLoads::family(const ScheduleSpec& spec, const Recomputation& recomputation,
                              const Offloading& offloading, std::optional<Bytes> limit) const {
  Family family = family_of(spec, recomputation);
  // Copied to the host, stashes are on the device for their backward alone.
  if (offloading.any()) family.partly_rebuilt = true;
  ShapeBound bound;
  bound_time(family, bound);
  bound_memory(family, bound);
  bound.fitting = bound.step;
  if (limit) bound.fitting = std::max(bound.fitting, fitting(family, *limit));
  return bound;
}

Time ShapeLoads::least_work(bool flushed) const {
  Family any;
  any.apart = !flushed;
  any.partly_rebuilt = true;
  any.hides = !pair_overlap_;
  return whole(work(sums_of(any)) * (1 - pair_overlap_.value_or(0) / 2));
}

ShapeBound ShapeLoads::shape() const {
  Family any;
  any.traits.pairs = true;
  any.hides = hides_transfers(any.traits);
  any.stages = layers();
  any.most_replicas = devices_;  // chimera's pipelines
  any.partly_rebuilt = true;
  any.any_chunks = cut_sequences_;
  ShapeBound bound;
  bound_time(any, bound);
  bound_memory(any, bound);
  return bound;
}

}  // namespace stageline::planner
