#include "tools/answers/drawn.hpp"

#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/study.hpp"

namespace stageline::answers {

DrawingAnswer answer(const DrawingQuestion& question) {
  DrawingAnswer drawn{opened_setting(question)};
  const int devices = drawn.setting.device_counts.front();
  for (const ScheduleSpec& schedule : schedules_of(question)) {
    drawn.asked.push_back(
        planner::searched_case(question.setting, drawn.setting, schedule, devices));
    drawn.outcomes.push_back(study(drawn.asked.back(), Curves::all));
  }
  return drawn;
}

}  // namespace stageline::answers
