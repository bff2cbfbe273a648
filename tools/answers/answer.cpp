#include "tools/answers/answer.hpp"

#include <utility>

#include "sim/base/errors.hpp"
#include "tools/answers/compared.hpp"
#include "tools/compare/advice.hpp"
#include "tools/inputs/training_budget.hpp"

namespace stageline::answers {
namespace {

std::vector<std::string> advice_on(const SettingRequest& request, const Result& result) {
  if (result.rows.size() < 2) return {};
  std::vector<std::string> advice = ways_to_fit(request, result.setting, result.rows).sentences;
  std::string alone = one_device_advice(request, result.setting, result.rows);
  if (!alone.empty()) advice.insert(advice.begin(), std::move(alone));
  return advice;
}

}  // namespace

SettingQuestion one_case_of(const Request& request, const std::string& several) {
  SettingQuestion question{request.setting};
  question.check = [several, many = request.setting.schedules.size() > 1](const Setting& setting) {
    if (many || setting.device_counts.size() > 1) throw UsageError(several);
  };
  return question;
}

Result answer(const Request& request, Keep keep) {
  ComparisonQuestion question;
  question.setting = request.setting;
  question.setting.schedules = schedules_of(question);
  question.check = [&request](const Setting& setting) {
    check_budget(request.budget, setting.model, "\"tokens\"");
  };
  question.within = request.within;
  question.budget = request.budget;
  question.keep = keep;
  Comparison found = answer(question);
  Result result{std::move(found.setting), std::move(found.rows), {}, {}};
  for (RankedRows& ranking : found.orders) {
    if (!ranking.rows.empty()) result.rankings.push_back(std::move(ranking));
  }
  result.advice = advice_on(request.setting, result);
  if (result.rows.size() < 2) return result;
  for (std::string& note : found.ties) result.advice.push_back(std::move(note));
  return result;
}

}  // namespace stageline::answers
