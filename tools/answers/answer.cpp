#include "tools/answers/answer.hpp"

#include <utility>

#include "tools/compare/advice.hpp"
#include "tools/inputs/training_budget.hpp"

namespace stageline {
namespace {

std::vector<std::string> advice_on(const SettingRequest& request, const Result& result) {
  if (result.rows.size() < 2) return {};
  std::vector<std::string> advice = ways_to_fit(request, result.setting, result.rows).sentences;
  std::string alone = one_device_advice(request, result.setting, result.rows);
  if (!alone.empty()) advice.insert(advice.begin(), std::move(alone));
  return advice;
}

}  // namespace

Result answer(const Request& request, Keep keep) {
  Result result;
  result.setting = read_setting(request.setting);
  check_budget(request.budget, result.setting.model, "\"tokens\"");
  std::vector<ScheduleSpec> schedules = request.schedules;
  if (schedules.empty() || request.setting.program) schedules = parse_schedules("1f1b");
  result.rows = compare(request.setting, result.setting, schedules, 0, {}, keep);
  for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
    RankedRows ranking = ranked(result.rows, synchrony, request.within);
    if (!ranking.rows.empty()) result.rankings.push_back(std::move(ranking));
  }
  result.advice = advice_on(request.setting, result);
  return result;
}

}  // namespace stageline
