#include "tools/answers/question.hpp"

#include <utility>

#include "tools/planner/cuts/searched_case.hpp"

namespace stageline {

ScheduleSpec default_schedule() { return parse_schedules("1f1b").front(); }

Setting opened_setting(const SettingQuestion& question) {
  Setting setting = read_setting(question.setting);
  if (question.check) question.check(setting);
  setting.notes.insert(setting.notes.end(), question.notes.begin(), question.notes.end());
  return setting;
}

OpenedCase opened_case(const SettingQuestion& question) {
  Setting setting = opened_setting(question);
  const ScheduleSpec spec =
      question.schedules.empty() ? default_schedule() : question.schedules.front();
  Case asked = searched_case(question.setting, setting, spec, setting.device_counts.front());
  return {std::move(setting), std::move(asked)};
}

}  // namespace stageline
