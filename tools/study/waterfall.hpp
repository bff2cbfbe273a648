// From the ideal step to the real one, cause by cause, so that the causes add up.
//
//   ideal           ████████████████                      all work, spread evenly over the devices
//   imbalance                       ███
//   fill and drain                     █████
//   messages                                ██
//   step            ██████████████████████████
//
// Each cause is what the step gets shorter by when it is removed, too, after all causes below it in
// the list of StepCause: the same order of ops with other durations, simulated until it is steady.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/units.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// In the order of the waterfall. Causes are removed from the last to the first.
enum class StepCause : std::uint8_t {
  imbalance,       // stages differ: removed, each takes the mean of all (sim/analysis/what_if)
  fill_and_drain,  // the pipeline fills and empties; of an equal run without all below
  dependency,      // the rest of the idle time of that run: ops wait for one another
  recompute,       // R
  interference,    // devices, or compute and communication, slow one another
  messages,        // exposed: latencies and waits for shared links included
  blocking_collectives,  // inside F, I, W, B and R
  reductions,            // of gradients, exposed
  optimizer,             // U, with the collectives inside
  copies,                // to the host and back, exposed
};
inline constexpr int step_causes = 10;
/// "fill and drain".
std::string_view name(StepCause cause);

struct Waterfall {
  Time step{};
  /// Compute of F, I, W and B without collectives, of all devices in a step, over their number.
  Time ideal{};
  /// By StepCause. With `ideal` they add up to `step`, to the picosecond. Below 0 where the step
  /// gets longer without the cause: where links are shared, or where a device is faster than the
  /// others and has more of the work.
  std::array<Time, step_causes> by{};

  Time of(StepCause cause) const { return by[static_cast<std::size_t>(cause)]; }
};

/// Of the steady state. The idle time of the equal run is split into fill and drain and the rest as
/// that of its run is (Metrics); in the steady state of a schedule without flush the pipeline never
/// fills or drains. `nominal`: the case's outcome. Throws what simulating the case throws.
Waterfall waterfall_of(const Case& asked, const Outcome& nominal);

}  // namespace stageline
