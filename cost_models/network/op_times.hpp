// Sums of the times of ops, and what collectives add to them.
#pragma once

#include <algorithm>
#include <cmath>

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

/// What of a ring's messages in I runs under attention, of as many blocks as steps: keys and values
/// move in all steps but the last, their gradients in all but the first (TransformerEngine's
/// attention/dot_product_attention/context_parallel.py). So in one step either moves alone, and in
/// the others each has half of it. `beside`: half of all steps but one; `time`: of all messages.
inline Time hidden_in_ring(Time time, Time beside, int blocks) {
  const double message = static_cast<double>(time.count()) / (blocks - 1);
  const double half = static_cast<double>(beside.count()) / (blocks - 1);
  return Time{std::llround(std::min(message, 2 * half) + (blocks - 2) * std::min(message, half))};
}

/// What of a layer's collective of that time runs under the products beside it: the share that it
/// says, and no more than these take. `again`: R repeats those of F.
inline BlockingTimes hidden_of(const LayerCollective& collective, Time time, bool again) {
  const auto under = [&](int count, Time beside) {
    const double share = collective.hidden * static_cast<double>(time.count()) * count;
    return std::min(Time{std::llround(share)}, beside);
  };
  BlockingTimes times;
  if (collective.hidden <= 0) return times;
  times.forward = under(collective.forward, collective.forward_beside);
  const int rings = collective.use.blocks > 1 ? collective.input_grad : 0;
  times.input_grad =
      rings > 0
          ? hidden_in_ring(time, collective.backward_beside / rings, collective.use.blocks) * rings
          : under(collective.input_grad, collective.backward_beside);
  times.backward = times.input_grad;
  if (again) times.recompute = times.forward;
  return times;
}

/// What a layer's collective of that time adds to its ops, without what is hidden.
inline BlockingTimes blocking_of(const LayerCollective& collective, Time time, bool again) {
  const BlockingTimes hidden = hidden_of(collective, time, again);
  BlockingTimes times;
  times.forward = checked_product(time, collective.forward) - hidden.forward;
  times.input_grad = checked_product(time, collective.input_grad) - hidden.input_grad;
  times.weight_grad = checked_product(time, collective.weight_grad);
  times.backward = checked_sum(times.input_grad, times.weight_grad);
  if (again) times.recompute = times.forward;
  return times;
}

}  // namespace stageline
