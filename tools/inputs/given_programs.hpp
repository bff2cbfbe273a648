// Schedules as they are named: those of the library, and programs in files.
#pragma once

#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"

namespace stageline {

/// The schedules of some lists: "1f1b,zb_auto:limit=2p,mine.slp". What is_program_path() is a file,
/// in our own text or PyTorch's CSV; a list may also be the text of a program. A program is called
/// as it says, else after its file; where another schedule of the lists is called so, with its path
/// behind. Throws what parse_schedules() and read_program() throw; `quiet` as there.
std::vector<ScheduleSpec> read_schedules(const std::vector<std::string>& lists, bool quiet);

/// The schedule of one file, whatever its name.
ScheduleSpec read_schedule_file(const std::string& path, bool quiet);

/// What the programs among the schedules say; 0: there are none. Throw UsageError where they
/// differ, with both numbers.
int given_devices(const std::vector<ScheduleSpec>& schedules);
/// In a step.
int given_microbatches(const std::vector<ScheduleSpec>& schedules);

}  // namespace stageline
