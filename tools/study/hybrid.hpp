// Hybrid training: the first iterations through the pipeline, with stale weights, the others on one
// device (Zhang and Abdelrahman, arXiv 1912.12675).
//
//     iteration  0 …                     N - 1 │ N …                            M - 1
//     pipelined  ├ fill ┤ one a period ├ drain ┤ forward, backward, update, one by one
//                └──────────── P(N) ───────────┘└────────── (M - N) · T ─────────────┘
//
// P(N) is the makespan of N mini-batches, so N · period and what fill and drain add.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/analysis/steady_state.hpp"
#include "tools/study/case.hpp"

namespace stageline {

/// A hybrid training run, and its speed-up over both pure runs.
struct Hybrid {
  Time total{};
  double over_nonpipelined = 1;  // time of the non-pipelined run / total
  double over_pipelined = 1;  // time of the pipelined run / total: 1 or less where that is faster
};

/// `pipelined` of `all` iterations go through the pipeline. 0 <= pipelined <= all, all >= 1.
struct PipelinedShare {
  std::int64_t pipelined = 0;
  std::int64_t all = 1;
};

/// From the times of a whole run in both ways: share · pipelined + (1 - share) · nonpipelined,
/// rounded once, and one fill and drain if anything is pipelined; `pipelined` is at the steady
/// pace, without them. Throws UsageError when that is longer than 64 bits of picoseconds, 106 days.
Hybrid hybrid_of(Time nonpipelined, Time pipelined, PipelinedShare share, Time fill_and_drain);

/// One point of the curve.
struct HybridPoint {
  PipelinedShare share;
  Hybrid hybrid;
};

/// A schedule against one device. An iteration is one mini-batch: forward, backward, update. Where
/// a schedule updates once a step, a mini-batch is the micro-batches of a step.
struct HybridStudy {
  int minibatch = 1;    // micro-batches
  Time nonpipelined{};  // an iteration on the fastest device alone: every layer's F, B and U
  Period period;        // of the pipeline: period.time for every period.rounds iterations, exactly
  Time fill{};          // until the first mini-batch is done, its last update included
  Time drain{};  // at the switch: from the last forward of the first stage to the last update
  /// Makespan of N mini-batches - N · period, rounded: what both cost. 0 where they cost nothing: a
  /// last round that is not whole, or whose updates nothing waits for, is shorter than the period.
  Time fill_and_drain{};
  HybridPoint asked;
  std::vector<HybridPoint> curve;  // from nothing pipelined to everything, in equal steps
};

/// Runs streams until their makespan grows by the period alone and extends them by it, so every
/// total is exact to the picosecond, however many iterations. Nothing when the schedule has no
/// rounds that repeat (tools/study/pace/bound.hpp). Throws UsageError for a synchronous schedule,
/// for a share outside 0 to 1, and for runs of more than 106 days.
std::optional<HybridStudy> hybrid_study(const Case& asked, PipelinedShare share, int curve_steps);

}  // namespace stageline
