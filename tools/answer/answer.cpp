// From a request to its result, and the errors of both as JSON.
#include "tools/answer/answer.hpp"

#include <fmt/core.h>

#include <optional>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "tools/base/json.hpp"
#include "tools/compare/advice.hpp"
#include "tools/inputs/training_budget.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/study/figures/contradictions.hpp"

namespace stageline {
namespace {

std::string error_json(std::string_view kind, std::string_view message) {
  const Json error{{"error", {{"kind", kind}, {"message", message}}}};
  return error.text();
}

Json index_or_null(const std::optional<std::size_t>& row) { return row ? Json(*row) : Json(); }

Json ranking_json(const RankedRows& ranking) {
  return {{"synchronous", ranking.synchrony == Synchrony::synchronous},
          {"rows", ranking.rows},
          {"fastest", index_or_null(ranking.fastest)},
          {"recommended", index_or_null(ranking.recommended)},
          {"sentence", ranking.sentence}};
}

std::vector<std::string> advice_on(const SettingRequest& request, const Result& result) {
  if (result.rows.size() < 2) return {};
  std::vector<std::string> advice = ways_to_fit(request, result.setting, result.rows).sentences;
  std::string alone = one_device_advice(request, result.setting, result.rows);
  if (!alone.empty()) advice.insert(advice.begin(), std::move(alone));
  return advice;
}

Result answered(const Request& request, Keep keep) {
  Result result;
  result.setting = read_setting(request.setting);
  check_budget(request.budget, result.setting.model, "\"tokens\"");
  std::vector<ScheduleSpec> schedules = request.schedules;
  if (schedules.empty() || request.setting.program) schedules = parse_schedules("1f1b");
  result.rows =
      compare(request.setting, result.setting, schedules, 0, {}, keep, nullptr, request.budget);
  for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
    RankedRows ranking = ranked(result.rows, synchrony, request.within);
    if (!ranking.rows.empty()) result.rankings.push_back(std::move(ranking));
  }
  result.advice = advice_on(request.setting, result);
  return result;
}

}  // namespace

Result answer(const Request& request) { return answered(request, Keep::spans); }

std::string print_result(const Request& request, const Result& result) {
  std::string rows;
  for (const Row& row : result.rows) {
    rows += rows.empty() ? "\n" : ",\n";
    rows += row.outcome ? row_json(result.setting, row, request.timeline)
                        : unanswered_json(row.asked, row.why_not);
  }
  Json rankings = Json::array();
  for (const RankedRows& ranking : result.rankings) rankings.push_back(ranking_json(ranking));
  return fmt::format("{{\n\"rows\": [{}],\n\"rankings\": {},\n\"advice\": {},\n\"notes\": {}}}\n",
                     rows, rankings.text(), Json(result.advice).text(), Json(request.notes).text());
}

std::string answer(std::string_view request_json) {
  return or_error([&] {
    const Request request = parse_request(request_json);
    return print_result(request, answered(request, request.timeline ? Keep::spans : Keep::facts));
  });
}

std::string or_error(const std::function<std::string()>& work) {
  try {
    return work();
  } catch (const UsageError& error) {
    return error_json("usage", error.what());
  } catch (const TraceError& error) {
    return error_json("trace", error.what());
  } catch (const ProgramError& error) {
    return error_json("program", error.what());
  } catch (const Deadlock& error) {
    return error_json("deadlock", error.what());
  } catch (const ContradictionError& error) {
    return error_json("contradiction", error.what());
  }
}

}  // namespace stageline
