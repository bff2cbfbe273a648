// The library's entry for a request: a question in, an answer out, as values. As JSON:
// tools/report/json/answer.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/answers/question.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline {
struct JsonValue;  // traces/json/tree.hpp
}  // namespace stageline

namespace stageline::answers {

/// A question. Several schedules, or several numbers of devices, are compared.
struct Request {
  SettingRequest setting;          // of no schedules: 1F1B
  bool timeline = false;           // with every span of the run
  std::optional<double> within{};  // as ComparisonQuestion has it
  TrainingBudget budget{};         // the training whose GPU-hours and price are asked
  std::vector<std::string> notes;  // how names of schedules were read
};

/// The question of a request for one case. Its check throws UsageError with the words `several`
/// for several schedules or numbers of devices.
SettingQuestion one_case_of(const Request& request, const std::string& several);

/// The answer: a row for each number of devices and schedule, and the rankings of the synchronous
/// and of the asynchronous rows, where there are any. Of several rows, `advice` says whether one
/// device is faster than all, which changes fit into memory where no row does, and which rows tie.
struct Result {
  Setting setting;
  std::vector<Row> rows;
  std::vector<RankedRows> rankings;
  std::vector<std::string> advice;
};

/// Throws UsageError, TraceError, ProgramError and ContradictionError; a schedule that cannot run
/// is a row without an outcome where another one can. `keep`: what the outcomes hold.
Result answer(const Request& request, Keep keep = Keep::spans);

/// A request from JSON: request.schema.json beside this file has its keys, which are those of the
/// command's flags. Throws TraceError with the JSON pointer for text that is not JSON, a key that
/// is not known or a value of the wrong type, and UsageError for a value that is not allowed.
Request parse_request(std::string_view json);
/// The same of JSON that has been read.
Request parse_request(const JsonValue& root);

}  // namespace stageline::answers
