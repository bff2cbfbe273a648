// For programs that have not adopted Flags: opens a setting directly from the shared flags.
#pragma once

#include "tools/commands/case_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/study/study.hpp"

namespace stageline {

inline Setting read_setting(const CommonFlags& flags) { return read_setting(request_of(flags)); }

inline Case make_case(const CommonFlags& flags, const Setting& setting, const ScheduleSpec& spec,
                      int devices) {
  CommonFlags rest = flags;
  rest.program.clear();  // the setting has it
  return make_case(request_of(rest), setting, spec, devices);
}

}  // namespace stageline
