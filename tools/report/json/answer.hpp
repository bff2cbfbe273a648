// A request and its answer as JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/answers/answer.hpp"

namespace stageline::report {

/// A result as JSON: {"rows": […], "rankings": […], "advice": […], "notes": […]}. The rows are the
/// objects of `--json`; keys in tools/report/json/README.md.
std::string print_result(const answers::Request& request, const answers::Result& result);

/// JSON in, JSON out. Never throws for bad input: the answer is then {"error": {"kind": …,
/// "message": …}}, with one of the kinds usage, trace, program, deadlock, contradiction. Files that
/// the request names are read; nothing is written, nor printed.
std::string answer(std::string_view request_json);

/// What work() returns, or where it throws for bad input the {"error": …} of answer().
std::string or_error(const std::function<std::string()>& work);

}  // namespace stageline::report
