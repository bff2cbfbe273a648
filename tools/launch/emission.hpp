// A setting as the flags of a framework: the other direction of run_setting.hpp, by the same table.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/model.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/launch/framework.hpp"
#include "tools/planner/planner.hpp"

namespace stageline {

struct EmissionAsked {
  SettingRequest setting;  // with degrees, micro-batch, recomputation; a pipeline of at least 1
  ScheduleSpec spec;
  std::int64_t samples = 0;           // of one update
  std::vector<std::string> stages{};  // as parse_megatron() returns them; empty without a pipeline
};

/// Flags of a command (Megatron-LM), TOML (torchtitan) or JSON (DeepSpeed), with a line at the end:
/// degrees, batch, schedule, cut, recomputation, division of the state and its precision. Those of
/// the model are the user's own. Throws UsageError for what the framework cannot express.
std::string emitted(Framework framework, const EmissionAsked& asked);

/// The frameworks that emitted() writes for.
inline constexpr std::array emitting_frameworks{Framework::megatron, Framework::torchtitan,
                                                Framework::deepspeed};

/// Leaves of a search what the framework can run: where the space does not say them, its schedules,
/// divisions of the state, recomputation, sequence parallelism and, of a transformer, cuts between
/// blocks. Throws UsageError where the space names what it does not have.
void restrict_to(Framework framework, const Model& model, planner::PlanSpace& space);

}  // namespace stageline
