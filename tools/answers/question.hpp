// What every question has: a setting, schedules by name, and what a face refuses and adds.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tools/base/progress.hpp"
#include "tools/inputs/setting.hpp"

namespace stageline::answers {

/// A face (the command, Python, the playground) fills it in, and hands it to an answer().
struct SettingQuestion {
  SettingRequest setting;
  /// Called with the setting as soon as it is open, before anything is simulated: the face throws
  /// UsageError, in words of its own, for what it does not take. Null: it takes all.
  std::function<void(const Setting&)> check{};
  std::vector<std::string> notes{};  // of the face; they join those of the setting
};

/// How a face watches over long work.
struct Watch {
  const std::atomic<bool>* stop = nullptr;  // ends the work early once it is set
  Progress progress{};                      // null: nobody asks
};

/// Thrown where `stop` came before there was any answer.
struct NothingKnown {
  std::string why;  // "no schedule was simulated"
};

/// The schedule of a question that names none: 1F1B.
ScheduleSpec default_schedule();

/// The schedules of the question, or default_schedule().
std::vector<ScheduleSpec> schedules_of(const SettingQuestion& question);

/// Opens the setting, checks it, and adds the notes of the face. Throws what read_setting() and
/// `check` throw.
Setting opened_setting(const SettingQuestion& question);

/// A setting, and the case of one schedule in it.
struct OpenedCase {
  Setting setting;
  Case asked;
};
/// The case of the first schedule, or of default_schedule(), on the first number of devices; what
/// is to be searched is found. Throws also what searched_case() throws.
OpenedCase opened_case(const SettingQuestion& question);

/// The same on the fewest devices, from 2 on, that schedule and cut run on, as far as the cluster
/// has them. Throws UsageError where there is no such number up to 64.
OpenedCase opened_on_fewest(const SettingQuestion& question);

}  // namespace stageline::answers
