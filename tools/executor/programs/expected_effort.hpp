// What a validation will take, estimated before it begins.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <cstddef>
#include <string>

#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/profile/profile.hpp"
#include "tools/executor/programs/validation.hpp"

namespace stageline::executor {

/// Rounds of each lane's profile before the first run.
inline constexpr int preparing_rounds = 5;
/// Runs of a case before one that counts: its allocations are new, where it computes.
inline int warm_up_runs(const ValidationPlan& plan) { return plan.imitate ? 1 : 2; }

/// What is profiled of a model at one size, on a lane.
ProfileRequest profile_request(const ValidationPlan& plan, const std::string& shape, int batch,
                               const Accelerator& lane);

struct Effort {
  double seconds = 0;
  Bytes tensors{};  // of all profiles, and of the largest run
};
/// A rough estimate, in half a second of measuring. `profiled_lane`: one of the lanes that are
/// profiled.
Effort expected_effort(const ValidationPlan& plan, std::size_t lane_count,
                       const Accelerator& profiled_lane);

}  // namespace stageline::executor
