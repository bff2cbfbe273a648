// Evidence made by hand, small enough that every figure of its judgement can be worked out on
// paper. What it says was measured is wrong on purpose, by amounts that are round.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/lab/evidence/judge.hpp"
#include "traces/traces.hpp"

namespace stageline::test {

inline std::vector<Time> milliseconds(const std::vector<int>& values) {
  std::vector<Time> times;
  for (const int value : values) times.push_back(std::chrono::milliseconds(value));
  return times;
}

inline std::vector<Time> five_times(int milliseconds) {
  return std::vector<Time>(5, std::chrono::milliseconds(milliseconds));
}

/// Compute and send lanes of two devices, the same in all five runs.
inline std::vector<lab::MeasuredDevice> lanes_busy(int first, int second, int sends,
                                                   int sends_back) {
  return {{five_times(first), five_times(sends), {}, {}},
          {five_times(second), five_times(sends_back), {}, {}}};
}

/// Four layers with F = I = W = 1 ms and 1 MB of output and stash, on two lanes: a stage of two
/// layers takes 2 ms forward and 4 ms backward.
inline lab::Evidence small_evidence() {
  lab::Evidence evidence;
  evidence.device = "made up for tests";
  evidence.date = "2026-01-01";
  evidence.software = "none";
  evidence.settings = "fp32";
  evidence.command = "none";
  evidence.notes = {"The times are wrong on purpose."};
  evidence.traces = {uniform_model("layers=4,batch=1")};
  evidence.traces[0].name = "four";
  evidence.cluster.name = "two lanes";
  evidence.cluster.devices.resize(2);
  evidence.cluster.devices[0].name = "lane0";
  evidence.cluster.devices[1].name = "lane1";

  const lab::MeasuredCase usual{"four", 1, "gpipe", "balanced", 4, 1, "", "", true, {}, {}, {}, {}};
  lab::MeasuredCase gpipe = usual;  // (4 + 1) × 6 = 30 ms are predicted
  gpipe.makespan = milliseconds({24, 26, 25, 26, 24});
  gpipe.devices = lanes_busy(20, 23, 0, 0);
  gpipe.devices[0].peaks = {Bytes{45'000'000}, Bytes{55'000'000}, Bytes{50'000'000}};
  gpipe.devices[0].stashes = {Bytes{8'100'000}, Bytes{8'000'000}, Bytes{8'100'000}};
  gpipe.devices[1].peaks = {Bytes{20'000'000}};
  gpipe.devices[1].stashes = {Bytes{8'000'000}};

  lab::MeasuredCase uneven = usual;  // 1 + 4 × 9 + 2 = 39 ms: lane1 never waits
  uneven.schedule = "1f1b";
  uneven.partition = "0-0,1-3";
  uneven.makespan = five_times(52);
  uneven.devices = lanes_busy(12, 36, 0, 0);

  lab::MeasuredCase naive = usual;  // 4 × 2 × 6 = 48 ms
  naive.schedule = "naive";
  naive.makespan = milliseconds({34, 34, 36, 38, 38});
  naive.devices = lanes_busy(24, 24, 0, 0);

  lab::MeasuredCase even = usual;  // 30 ms
  even.schedule = "1f1b";
  even.makespan = milliseconds({25, 27, 26, 27, 25});
  even.devices = lanes_busy(20, 20, 0, 0);

  lab::MeasuredCase linked = usual;  // 1 ms for 1 MB, hidden but for fill and drain: 32 ms
  linked.link = "1GB/s";
  linked.makespan = five_times(40);
  linked.devices = lanes_busy(30, 28, 6, 4);

  lab::MeasuredCase seen = usual;  // (2 + 1) × 6 = 18 ms
  seen.microbatches = 2;
  seen.held_out = false;
  seen.makespan = five_times(20);
  seen.devices = lanes_busy(12, 12, 0, 0);

  evidence.cases = {gpipe, uneven, naive, even, linked, seen};
  // Everything takes a quarter longer than predicted.
  Timeline slower = lab::predict(evidence, linked).timeline;
  for (auto& lane : slower.lanes) {
    for (Span& span : lane) span = {span.op, span.start * 5 / 4, span.end * 5 / 4};
  }
  evidence.cases[4].timeline = std::move(slower);
  return evidence;
}

}  // namespace stageline::test
