// An answer: what was asked, and the outcome.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "tools/answers/answer.hpp"
#include "tools/python/src/timeline.hpp"

namespace stageline::python {

/// One case and its outcome. Results of one comparison share the setting.
struct Simulated {
  std::shared_ptr<const answers::Request> request;
  std::shared_ptr<const Setting> setting;
  Case asked;
  Outcome outcome;
  std::shared_ptr<const SpanTable> table{};  // made when it is first looked at
  std::shared_ptr<const Outcome> drawn{};    // with memory over time, likewise
};

void bind_result(nanobind::module_& module);
void bind_question(nanobind::module_& module);

}  // namespace stageline::python
