// Values of a page's data that several kinds have.
#pragma once

#include <optional>

#include "tools/base/json.hpp"
#include "tools/report/page/sections.hpp"

namespace stageline::report {

/// {"value": picoseconds, "text": "14.48 ms"}
inline Json page_time(Time time) {
  return {{"value", Json(time.count())}, {"text", Json(print(time))}};
}

inline Json page_line(const std::optional<ReferenceValue>& line) {
  if (!line) return nullptr;
  return {{"value", line->value}, {"words", line->words}, {"definition", line->definition}};
}

}  // namespace stageline::report
