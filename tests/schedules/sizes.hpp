// A size of a pipeline with equal stages, and what a run of it is judged by.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "tests/make.hpp"

namespace stageline::test {

/// p devices, m micro-batches, times of one stage, c the time or the latency of a message.
struct Size {
  int p = 1;
  int m = 1;
  int F = 1;
  int I = 1;
  int W = 1;
  int c = 0;
};

/// Of the devices, the longest time from the first start to the last end.
inline Time longest_span(const Ran& ran) {
  Time longest{};
  for (const DeviceMetrics& device : metrics_of(ran.program, ran.graph, ran.times).device) {
    longest = std::max(longest, device.busy + device.span_idle);
  }
  return longest;
}

/// The most stashes that each device holds.
inline std::vector<int> peaks(const Ran& ran) {
  return memory_of(ran.program, ran.costs, ran.timeline).device_stash_peak;
}

/// The most stashes that any device holds.
inline int peak(const Ran& ran) {
  const std::vector<int> all = peaks(ran);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace stageline::test
