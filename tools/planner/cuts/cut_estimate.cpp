// What a cut costs by closed forms, after the bounds of a flushed step: no device is done before
// its work is, no stage before its micro-batches went to the last stage and back, as many at a time
// as the schedule has in flight, no link before its bytes have passed.
#include <algorithm>

#include "tools/planner/cuts/cut_space.hpp"

namespace stageline::planner {
namespace {

double sum_between(const std::vector<double>& sums, int from, int to) {
  return nth(sums, to) - nth(sums, from);
}

}  // namespace

double CutSpace::forward(int s, int from, int to) const {
  const CutStage& at = stage(s);
  return sum_between(times_[at.kind].forward, from, to) + at.overhead;
}

double CutSpace::passage(int s, int from, int to) const {
  const CutStage& at = stage(s);
  const Times& sums = times_[at.kind];
  const bool again = at.rebuild == Rebuild::full || at.rebuild == Rebuild::every;
  const double ahead = sum_between(sums.forward, from, to);
  return (again ? 2 : 1) * ahead + sum_between(sums.back, from, to) + 2 * at.overhead;
}

double CutSpace::time(int s, int from, int to) const {
  const CutStage& at = stage(s);
  const double later = sum_between(times_[at.kind].later, from, to);
  const double all = passage(s, from, to) + later + (split_ ? at.overhead : 0);
  if (!at.apart) return all / at.turns;
  const double ahead = forward(s, from, to);
  return std::max(ahead, all - ahead) / at.turns;
}

double CutSpace::memory(int s, int from, int to) const {
  const CutStage& at = stage(s);
  double stash = sum_between(stash_, from, to);
  if (at.rebuild == Rebuild::selective) stash -= sum_between(selective_, from, to);
  double one = 0;  // of which the backward at work has the whole
  if (at.rebuild == Rebuild::full || at.rebuild == Rebuild::every) {
    one = stash;
    stash = crossing(from);
  }
  return sum_between(weights_, from, to) * at.versions + sum_between(state_, from, to) +
         at.held * stash + one;
}

CutEstimate CutSpace::estimate(const Begins& cut) const {
  const int count = stages();
  const auto m = static_cast<double>(microbatches_);
  const auto begin = [&](int s) { return s == 0 ? 0 : s == count ? units() : nth(cut, s - 1); };
  std::vector<double> load(limit_.size());
  std::vector<double> held(limit_.size());
  std::vector<double> soonest(limit_.size(), -1);  // filled and drained around the device
  std::vector<double> carried(resources_);
  double around = 0;  // from the first stage to this one, and back
  for (int s = 0; s < count; ++s) {
    const CutStage& at = stage(s);
    const int from = begin(s);
    const int to = begin(s + 1);
    if (s > 0) {
      around += passage(s - 1, begin(s - 1), from) + 2 * nth(at.into, from);
      for (const CutStage::Load& one : at.loads) {
        carried[one.resource] += one.each * crossing(from);
      }
    }
    const double busy = time(s, from, to);
    const double bytes = memory(s, from, to);
    for (const int device : at.devices) {
      nth(load, device) += busy;
      nth(held, device) += bytes;
      double& first = nth(soonest, device);
      if (first < 0 || around < first) first = around;
    }
  }
  CutEstimate estimate;
  double pace = 0;  // of a stream, for a micro-batch
  double step = 0;
  for (std::size_t d = 0; d < load.size(); ++d) {
    pace = std::max(pace, load[d]);
    step = std::max(step, m * load[d] + std::max(soonest[d], 0.0));
    estimate.missing_share = std::max(estimate.missing_share, held[d] / limit_[d] - 1);
  }
  for (const double one : carried) {
    pace = std::max(pace, one);
    step = std::max(step, m * one);
  }
  double there_and_back = 0;  // from this stage to the last one
  for (int s = count - 1; s >= 0; --s) {
    const CutStage& at = stage(s);
    const int from = begin(s);
    const int to = begin(s + 1);
    if (s + 1 < count) there_and_back += 2 * nth(stage(s + 1).into, to);
    there_and_back += passage(s, from, to);
    const double rounds = std::max(1.0, m / at.ahead);
    pace = std::max(pace, there_and_back / at.ahead);
    step = std::max(step, around + rounds * there_and_back);
    if (at.sharers == 1 && at.turns == 1 && !at.apart) {
      // Until its first gradient is back the stage has only so many forwards to run.
      const double ahead = forward(s, from, to);
      const double wait = there_and_back - (passage(s, from, to) - ahead);
      const double warm = std::max(0.0, wait - std::min(at.ahead, m) * ahead);
      step = std::max(step, around + m * time(s, from, to) + warm);
    }
    if (s > 0) around -= passage(s - 1, begin(s - 1), from) + 2 * nth(at.into, from);
  }
  estimate.step = flushed_ ? step : pace * m;
  return estimate;
}

}  // namespace stageline::planner
