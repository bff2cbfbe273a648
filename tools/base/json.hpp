// How times stand in the JSON that the tools write.
#pragma once

#include <string>

#include "sim/units.hpp"

namespace stageline {

/// "step_s" to read and "step_ps" to compute with, which is exact.
template <class Json>
void put_time(Json& object, const std::string& key, Time time) {
  object[key + "_s"] = to_seconds(time);
  object[key + "_ps"] = time.count();
}

}  // namespace stageline
