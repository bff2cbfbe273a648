// A case of equal layers.
#pragma once

#include <optional>
#include <string>

#include "tests/specs.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::test {

/// Eight layers of 1 ms for each pass, on devices without links, by that schedule.
inline Case uniform_case(const std::string& schedule, int devices, int microbatches,
                         std::optional<Bytes> memory = std::nullopt) {
  Case asked;
  asked.model = uniform_model("layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms");
  asked.cluster = uniform_cluster(devices, std::nullopt, memory);
  asked.spec = parse_schedules(schedule).at(0);
  asked.microbatches = microbatches;
  return asked;
}

}  // namespace stageline::test
