// Sums of the times of ops, and what collectives add to them.
#pragma once

#include "cost_models/network/ranked_cluster.hpp"
#include "sim/checked.hpp"

namespace stageline {

inline void add(Time& sum, Time more) { sum = checked_sum(sum, more); }

/// To the time of an op, and to the part of it that communicates.
template <class Times>  // StageCosts, BlockingTimes
void add_times(Times& sum, const BlockingTimes& more) {
  add(sum.forward, more.forward);
  add(sum.input_grad, more.input_grad);
  add(sum.weight_grad, more.weight_grad);
  add(sum.backward, more.backward);
  add(sum.recompute, more.recompute);
}

/// What a layer's collective of that time adds to its ops. `again`: R repeats those of F.
inline BlockingTimes blocking_of(const LayerCollective& collective, Time time, bool again) {
  BlockingTimes times;
  times.forward = checked_product(time, collective.forward);
  times.input_grad = checked_product(time, collective.input_grad);
  times.weight_grad = checked_product(time, collective.weight_grad);
  times.backward = checked_sum(times.input_grad, times.weight_grad);
  if (again) times.recompute = times.forward;
  return times;
}

}  // namespace stageline
