// What follows from the loads of a shape's layers for any schedule on any cut.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/planner/shape_loads.hpp"

namespace stageline {
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

double ShapeLoads::work(const Sums& sums) const {
  return (microbatches_ * sums.load.back() + sums.update) / rates_;
}

// The least T for which so many stages cover the layers, each at most T long: by bisection.
double ShapeLoads::slowest_stage(const Sums& sums, int stages, double microbatches) const {
  const std::vector<double>& load = sums.load;
  double low = microbatches * load.back() / stages;
  double high = microbatches * load.back();
  for (std::size_t l = 0; l < layer_.size(); ++l) {
    low = std::max(low, microbatches * (load[l + 1] - load[l]));
  }
  const auto enough = [&](double limit) {
    std::size_t begin = 0;
    for (int stage = 0; stage < stages && begin + 1 < load.size(); ++stage) {
      const double most = load[begin] + limit / microbatches * (1 + 1e-15);
      const auto end =
          std::upper_bound(load.begin() + static_cast<std::ptrdiff_t>(begin), load.end(), most);
      begin = as_size(end - load.begin() - 1);
    }
    return begin + 1 == load.size();
  };
  if (enough(low)) return low;
  for (int i = 0; i < 40 && high - low > rounding_share * high; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return low;
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
  bound.step = whole(step - (family.chunks - 1) * 4.0 * microbatches_ * family.stages);
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
  const auto need = [&](std::size_t begin, std::size_t end, int stage) {
    const int more =
        least_in_flight(family.traits, stage, stages, static_cast<int>(microbatches_)) - 1;
    return state[end] - state[begin] +
           (more * (kept[end] - kept[begin]) + made[end] - made[begin]) / family.chunks;
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
  for (int i = 0; i < 40 && high - low > rounding_share * high; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return low;
}

void ShapeLoads::bound_memory(const Family& family, ShapeBound& bound) const {
  double most = 0;
  const auto raise = [&](double to, auto&& where) {
    if (to <= most) return;
    most = to;
    bound.where = where();
  };
  double state = 0;
  double least_workspace = layer_.empty() ? 0 : layer_.front().workspace;
  for (const LayerLoad& layer : layer_) {
    state += held(family, layer);
    least_workspace = std::min(least_workspace, layer.workspace);
  }
  const double copies = family.apart ? 1 : family.least_replicas;
  raise(state * copies / devices_ +
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
                              const Offloading& offloading) const {
  Family family = family_of(spec, recomputation);
  // Copied to the host, stashes are on the device for their backward alone.
  if (offloading.any()) family.partly_rebuilt = true;
  ShapeBound bound;
  bound_time(family, bound);
  bound_memory(family, bound);
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
  any.most_replicas = 2;
  any.partly_rebuilt = true;
  any.any_chunks = cut_sequences_;
  ShapeBound bound;
  bound_time(any, bound);
  bound_memory(any, bound);
  return bound;
}

}  // namespace stageline
