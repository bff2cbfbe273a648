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
// CauseOrder::shapley takes the mean over all orders of removal instead (Shapley 1953), so that no
// cause is small for being removed late.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
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
  memory_limit,          // the order is another than with the schedule's limit=none, and slower
  jitter,                // mean step under scenarios less the nominal one; as add_jitter() adds it
};
inline constexpr int step_causes = 12;
/// "fill and drain".
std::string_view name(StepCause cause);

/// Time by StepCause. Below 0 where the step gets longer without the cause: where links are shared,
/// or where a device is faster than the others and has more of the work.
using TimeByCause = std::array<Time, step_causes>;

/// One device's step: `work`, and what each cause has it do or wait; all of it adds up to the step.
struct DeviceWaterfall {
  std::string name;
  Time work{};         // of F, I, W and B without collectives
  TimeByCause busy{};  // with other ops: R, U, collectives
  TimeByCause idle{};  // the rest of what the cause lengthens the step by
};

enum class CauseOrder : std::uint8_t { fixed, shapley };

struct Waterfall {
  Time step{};
  /// Compute of F, I, W and B without collectives, of all devices in a step, over their number.
  Time ideal{};
  /// With `ideal` they add up to `step`, to the picosecond.
  TimeByCause by{};
  std::vector<DeviceWaterfall> device;
  CauseOrder order = CauseOrder::fixed;
  int orders = 1;  // of removal that `by` is the mean of

  Time of(StepCause cause) const { return by[static_cast<std::size_t>(cause)]; }
};

/// The step of a schedule, cause by cause.
struct NamedWaterfall {
  std::string name;
  Waterfall waterfall;
};

/// Up to so many causes, Shapley values are over all orders; beyond, over `sampled_orders` drawn
/// ones, the same in every run.
inline constexpr int most_exact_causes = 8;
inline constexpr int sampled_orders = 200;

/// The waterfall of the steady state. It splits the idle time of the equal run into fill and drain
/// and the rest as that of its run is (Metrics); the steady state of a schedule without flush has
/// no fill or drain. `nominal`: the case's outcome. Throws what simulating the case throws.
Waterfall waterfall_of(const Case& asked, const Outcome& nominal,
                       CauseOrder order = CauseOrder::fixed);

/// The same of the mean step under scenarios, `longer` than the nominal one.
void add_jitter(Waterfall& waterfall, Time longer);

}  // namespace stageline
