// The names that other tools and papers give to schedules, read as ours.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

/// `word` in lower case, letters and digits alone; `spec` as parse_schedules() reads it.
struct ScheduleAlias {
  std::string_view word;
  std::string_view spec;
};

/// The names that do not become ours by leaving out "Schedule" and minding neither case nor
/// punctuation, as ScheduleGPipe, 1F1B and ZB-H1 do.
std::span<const ScheduleAlias> schedule_aliases();

/// The spec that a name is read as: the name itself where a schedule has it, else that of the
/// schedule or alias with the same letters and digits, else empty.
std::string read_schedule_name(const std::string& name);

/// The spec whose name or alias is nearest to `name`, as ` (did you mean "X"?)`, or an empty text.
std::string did_you_mean_schedule(const std::string& name);

/// A sentence for each name in lists of specs, as the user wrote them, that is read as another.
std::vector<std::string> read_as_notes(const std::vector<std::string>& lists);

}  // namespace stageline
