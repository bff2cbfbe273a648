// The pipelines that the benchmarks time: 1F1B over equal stages, and the bare recurrence of its
// order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/costs.hpp"
#include "tests/make.hpp"

namespace stageline::bench {

/// How messages travel between neighbours.
enum class Wires : std::uint8_t {
  none,   // at once: no messages
  own,    // a wire for each pair of devices: nothing is shared, sweep and run agree
  ports,  // one full-duplex port a device: two neighbours share its ingress
};

/// Times in ps; whole numbers of µs, so that a simulator in doubles can follow. Forward 2, backward
/// 4, and a message 1 unit with `lag` behind it.
struct Pipeline {
  int devices = 0;
  int microbatches = 0;
  Wires wires = Wires::none;
  Time forward{2'000'000};
  Time backward{4'000'000};
  Time message{1'000'000};
};

inline Costs costs_of(const Pipeline& pipeline) {
  const int p = pipeline.devices;
  const Time half = pipeline.backward / 2;
  const bool own = pipeline.wires == Wires::own;
  Costs costs = uniform_costs(p, p, pipeline.forward, half, half, own ? pipeline.message : Time{});
  if (pipeline.wires != Wires::ports) return costs;
  // A byte a picosecond.
  const Bytes bytes{pipeline.message.count()};
  for (EdgeCosts& edge : costs.edges) edge.activation = edge.gradient = bytes;
  const LinkSpec link{Bandwidth{1'000'000'000'000}, Time{}};
  costs.network = network_of(uniform_cluster(p, link, std::nullopt));
  return costs;
}

inline Problem problem_of(const Pipeline& pipeline) {
  return test::problem_for(test::spec("1f1b"), pipeline.devices, costs_of(pipeline),
                           pipeline.microbatches);
}

/// What the same order costs at least: nothing but max and add over arrays, for this one schedule
/// on wires of their own. All devices walk in step: in tick t device s does
///     forward t-s                while it warms up (p-1-s forwards),
///     forward (t-s)/2            in every other tick from then on,
///     backward (t-(2p-1-s))/2    in the ticks between.
/// Gives the makespan. All moments are kept, as an engine must keep them.
struct BareTimes {
  std::vector<std::int64_t> forward;   // [microbatch][device], moment the output is at its reader
  std::vector<std::int64_t> backward;  // [microbatch][device], moment the gradient is at its reader
};

inline Time bare_recurrence(const Pipeline& pipeline, BareTimes& times) {
  const std::int64_t p = pipeline.devices;
  const std::int64_t m = pipeline.microbatches;
  const std::int64_t forward_time = pipeline.forward.count();
  const std::int64_t backward_time = pipeline.backward.count();
  const bool wired = pipeline.wires != Wires::none;
  const std::int64_t message_time = wired ? pipeline.message.count() : 0;
  times.forward.resize(static_cast<std::size_t>(p * m));
  times.backward.resize(static_cast<std::size_t>(p * m));
  std::int64_t* const forward = times.forward.data();
  std::int64_t* const backward = times.backward.data();
  std::vector<std::int64_t> device_free(static_cast<std::size_t>(p));
  std::vector<std::int64_t> port_free(static_cast<std::size_t>(p));
  const auto sent = [&](std::int64_t end, std::int64_t s) {
    if (!wired) return end;
    std::int64_t& port = port_free[static_cast<std::size_t>(s)];
    port = std::max(port, end) + message_time;
    return port;
  };
  const std::int64_t ticks = 2 * (m + p - 1);
  for (std::int64_t t = 0; t < ticks; ++t) {
    for (std::int64_t s = 0; s < std::min({p, t + 1, ticks - t}); ++s) {
      const std::int64_t warm_up = p - 1 - s;
      std::int64_t& free = device_free[static_cast<std::size_t>(s)];
      if (t - s < warm_up || (t - s) % 2 == 0) {
        const std::int64_t i = t - s < warm_up ? t - s : (t - s) / 2;
        if (i >= m || (t - s >= warm_up && i < warm_up)) continue;
        free = std::max(free, s > 0 ? forward[i * p + s - 1] : 0) + forward_time;
        forward[i * p + s] = s + 1 < p ? sent(free, s) : free;
      } else {
        const std::int64_t i = (t - (2 * p - 1 - s)) / 2;
        if (t < 2 * p - 1 - s || i >= m) continue;
        free = std::max(free, s + 1 < p ? backward[i * p + s + 1] : 0) + backward_time;
        backward[i * p + s] = s > 0 ? sent(free, s) : free;
      }
    }
  }
  return Time{*std::max_element(device_free.begin(), device_free.end())};
}

}  // namespace stageline::bench
