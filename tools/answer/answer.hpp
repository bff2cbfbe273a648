// The library's one entry: a question in, an answer out, as values or as JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline {

struct JsonValue;  // traces/json/tree.hpp

/// A question. Several schedules, or several numbers of devices, are compared.
struct Request {
  SettingRequest setting;
  std::vector<ScheduleSpec> schedules;  // empty: 1F1B; ignored where `setting` has a program
  bool timeline = false;                // with every span of the run
  double within = default_within;       // as rank() takes it
  TrainingBudget budget{};              // the training whose GPU-hours and price are asked
  std::vector<std::string> notes;       // how names of schedules were read
};

/// The answer: a row for each number of devices and schedule, and the rankings of the synchronous
/// and of the asynchronous rows, where there are any. Of several rows, `advice` says whether one
/// device is faster than all, and which changes fit into memory where no row does.
struct Result {
  Setting setting;
  std::vector<Row> rows;
  std::vector<RankedRows> rankings;
  std::vector<std::string> advice;
};

/// Throws UsageError, TraceError, ProgramError and ContradictionError; a schedule that cannot run
/// is a row without an outcome where another one can.
Result answer(const Request& request);

/// A request from JSON: request.schema.json beside this file has its keys, which are those of the
/// command's flags. Throws TraceError with the JSON pointer for text that is not JSON, a key that
/// is not known or a value of the wrong type, and UsageError for a value that is not allowed.
Request parse_request(std::string_view json);
/// The same of JSON that has been read.
Request parse_request(const JsonValue& root);

/// A result as JSON: {"rows": […], "rankings": […], "advice": […], "notes": […]}. The rows are the
/// objects of `--json`; keys in tools/report/json/README.md.
std::string print_result(const Request& request, const Result& result);

/// JSON in, JSON out. Never throws for bad input: the answer is then {"error": {"kind": …,
/// "message": …}}, with one of the kinds usage, trace, program, deadlock, contradiction. Files that
/// the request names are read; nothing is written, nor printed.
std::string answer(std::string_view request_json);

/// What work() returns, or where it throws for bad input the {"error": …} of answer().
std::string or_error(const std::function<std::string()>& work);

}  // namespace stageline
