// What the playground asks the library: a word and a text in, JSON out.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

/// `what` is one of
///
///     answer    a request (tools/answers/request.schema.json): its answer, that of answer()
///     program   a request with one schedule: {"text": …}, the program that it runs
///     compute   the same without messages and updates, as the scheduler writes it
///     check     a program text: {"microbatches", "devices", "findings", "deadlocks"}
///     names     nothing: the schedules with their knobs, bundled traces and clusters
///     look      a list of requests and files: rows and one diagram (look.hpp)
///     open      the path of a file: {"kind": "program", …}, {"kind": "timeline", …} or
///               {"kind": "trace", …}, by its content
///
/// Bad input is {"error": {"kind", "message"}} as in answer(), of a program text with "line" and
/// "column". Throws nothing for bad input; keys in tools/playground/README.md.
std::string ask(std::string_view what, const std::string& text);

}  // namespace stageline
