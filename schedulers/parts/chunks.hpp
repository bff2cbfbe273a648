// For devices that several stages ("chunks") live on: where the chunks are.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {

/// The whole number that an "int" knob holds.
inline int number(const Knobs& knobs, const std::string& knob) { return std::stoi(knobs.at(knob)); }

/// Throws UsageError when the chunks of all devices are more stages than can be numbered. `knob`
/// is what to take less of, and `each` the chunks that one of it makes.
inline void check_chunks(std::string_view scheduler, std::string_view knob, int value, int devices,
                         int each = 1) {
  const std::int64_t stages = std::int64_t{value} * each * devices;
  if (stages <= max_stages) return;
  throw UsageError(fmt::format(
      "{}: {}={} on {} devices makes {} stages, but at most {} can be told apart; take {}={}",
      scheduler, knob, value, devices, stages, max_stages, knob, max_stages / devices / each));
}

/// Stage k on device k mod `devices`.
///
///     device 0: stages 0 3    1: stages 1 4    2: stages 2 5
inline Placement looped_placement(int devices, int chunks) {
  Placement placement = straight_placement(devices * chunks);
  for (int k = 0; k < placement.stages(); ++k) {
    nth(placement.stage, k).replicas = {k % devices};
  }
  return placement;
}

/// There and back again: every second chunk runs through the devices in reverse, so that its first
/// stage follows the last of the chunk before on the same device.
///
///     device 0: stages 0 5    1: stages 1 4    2: stages 2 3
inline Placement zigzag_placement(int devices, int chunks) {
  Placement placement = looped_placement(devices, chunks);
  for (int k = 0; k < placement.stages(); ++k) {
    if (k / devices % 2 == 0) continue;
    nth(placement.stage, k).replicas = {devices - 1 - k % devices};
  }
  return placement;
}

/// Two replicas of the model in opposite directions: even micro-batches go down the devices, odd
/// ones up. The middle one of an odd number of devices has the same stage either way, once.
///
///     device 0: stages 0 3    1: stages 1 2    2: stages 2 1    3: stages 3 0
inline Placement opposite_placement(int devices) {
  Placement placement = straight_placement(devices);
  for (int s = 0; s < devices; ++s) {
    const int other = devices - 1 - s;
    if (other != s) nth(placement.stage, s).replicas = {s, other};
  }
  return placement;
}

}  // namespace stageline
