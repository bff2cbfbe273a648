// What the tests of synchronous schedules share. p devices, m
// micro-batches, v chunks a device, w waves, F forward and B backward of one stage, c one transfer.
#pragma once

#include <doctest/doctest.h>

#include <tuple>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"

namespace stageline::test::equal_stages {

// F, I, W: alike, F > B, F < B, B = 2F.
inline constexpr std::tuple<int, int, int> ratios[] = {{1, 1, 0}, {7, 2, 3}, {3, 8, 5}, {2, 2, 2}};

struct Size {
  int p = 1;
  int m = 1;
  Time F{1};
  Time I{1};
  Time W{1};
  Time c{};

  Time B() const { return I + W; }
  Time FB() const { return F + I + W; }
};

// One stage takes F, I and W.
inline Ran run(const std::string& schedule, const Size& size, int steps = 1) {
  const int stages = stages_for(spec(schedule), size.p);
  return run_schedule(schedule, size.p,
                      uniform_costs(stages, size.p, size.F, size.I, size.W, size.c), size.m, steps);
}
inline Time makespan_of(const std::string& schedule, const Size& size) {
  return makespan(run(schedule, size).times);
}
inline std::vector<int> peaks(const Ran& ran) {
  return memory_of(ran.program, ran.costs, ran.timeline).device_stash_peak;
}
// Copies of a stage's weights that each device holds; they are a byte each here.
inline std::vector<std::int64_t> weights_held(const Ran& ran) {
  std::vector<std::int64_t> copies;
  const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline);
  for (const DeviceMemory& device : memory.device) {
    copies.push_back(nth(device.at_peak, MemoryKind::weights).count);
  }
  return copies;
}
inline void check_idle(const Ran& ran, Time idle) {
  const Metrics metrics = metrics_of(ran.program, ran.graph, ran.times);
  for (const DeviceMetrics& device : metrics.device) CHECK(device.idle == idle);
}

inline std::string with(const std::string& schedule, const std::string& knob, int value) {
  const char separator = schedule.find(':') == std::string::npos ? ':' : ',';
  return schedule + separator + knob + "=" + std::to_string(value);
}

template <class Check>
void over(int first, int last, int by, Check&& check) {
  for (int p = first; p <= last; p += by) {
    for (const auto& [F, I, W] : ratios) {
      const Size size{p, 1, Time{F}, Time{I}, Time{W}, Time{}};
      CAPTURE(p);
      CAPTURE(size.F.count());
      CAPTURE(size.I.count());
      CAPTURE(size.W.count());
      check(size);
    }
  }
}

}  // namespace stageline::test::equal_stages
