// The frameworks whose runs are read and written, and the schedules that each of them has.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/scheduler.hpp"

namespace stageline {

enum class Framework : std::uint8_t { megatron, megatron_bridge, torchtitan, deepspeed, nemo };
inline constexpr std::array all_frameworks{Framework::megatron, Framework::megatron_bridge,
                                           Framework::torchtitan, Framework::deepspeed,
                                           Framework::nemo};
std::string_view name(Framework framework);

/// Whether its arguments are Megatron-Core's, by whatever file they come.
bool is_megatron(Framework framework);

/// What its pipelines can run, with the numbers of chunks that a search tries.
std::vector<ScheduleSpec> schedules_of(Framework framework);

/// How it calls the schedule: "Interleaved1F1B"; empty where the flags of chunks say it. Throws
/// UsageError for one that it does not have.
std::string_view schedule_name(Framework framework, const ScheduleSpec& spec);

/// Throws UsageError where one of them is not the framework's.
void check_runs_in(Framework framework, const std::vector<ScheduleSpec>& specs);

}  // namespace stageline
