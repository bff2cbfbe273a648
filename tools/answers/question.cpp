#include "tools/answers/question.hpp"

#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::answers {
namespace {

ScheduleSpec first_schedule(const SettingQuestion& question) {
  return schedules_of(question).front();
}

}  // namespace

ScheduleSpec default_schedule() { return parse_schedules("1f1b").front(); }

std::vector<ScheduleSpec> schedules_of(const SettingQuestion& question) {
  if (question.setting.schedules.empty()) return {default_schedule()};
  return question.setting.schedules;
}

Setting opened_setting(const SettingQuestion& question) {
  Setting setting = read_setting(question.setting);
  if (question.check) question.check(setting);
  setting.notes.insert(setting.notes.end(), question.notes.begin(), question.notes.end());
  return setting;
}

OpenedCase opened_case(const SettingQuestion& question) {
  Setting setting = opened_setting(question);
  Case asked = planner::searched_case(question.setting, setting, first_schedule(question),
                                      setting.device_counts.front());
  return {std::move(setting), std::move(asked)};
}

OpenedCase opened_on_fewest(const SettingQuestion& question) {
  constexpr int most = 64;
  Setting setting = opened_setting(question);
  const ScheduleSpec schedule = first_schedule(question);
  std::string refusal;
  for (int devices = 2; devices <= most; ++devices) {
    std::optional<Case> asked;
    try {
      asked = planner::searched_case(question.setting, setting, schedule, devices);
    } catch (const UsageError&) {
      if (devices == 2) throw;
      break;  // the cluster has no more
    }
    try {
      lay_out(*asked);
      return {std::move(setting), std::move(*asked)};
    } catch (const UsageError& error) {
      refusal = error.what();
    }
  }
  throw UsageError(refusal);
}

}  // namespace stageline::answers
