// Simulates one pipeline, or its replicas together.
#include "tools/executor/programs/prediction.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "tools/planner/cuts/searched_case.hpp"

namespace stageline::executor {
namespace {

// "0-3 | 4-7" as --partition takes it.
std::string as_flag(const Partition& partition) {
  std::string text = print(partition);
  for (std::size_t at = text.find(" | "); at != std::string::npos; at = text.find(" | ")) {
    text.replace(at, 3, ",");
  }
  return text;
}

}  // namespace

Prediction predict(const SettingRequest& question, const Setting& setting,
                   const ScheduleSpec& schedule, int devices, int replicas, bool imitated) {
  if (devices % replicas != 0) {
    throw UsageError(fmt::format(
        "{} devices cannot be divided among {} replicas of the pipeline; give a multiple of {}",
        devices, replicas, replicas));
  }
  const auto case_on = [&](int count) {
    Case asked = searched_case(question, setting, schedule, count);
    if (imitated) {
      asked.cluster.interference.clear();
      asked.cluster.handover = {};
    }
    return asked;
  };
  Prediction one{case_on(devices / replicas), {}};
  one.outcome = study(one.asked);
  if (replicas == 1) return one;
  Prediction all{case_on(devices), {}};
  all.asked.program = replicated(one.outcome.program, replicas);
  all.asked.partition = as_flag(one.outcome.plan.partition);
  all.asked.microbatches = all.asked.program->microbatches;
  all.outcome = study(all.asked);
  return all;
}

}  // namespace stageline::executor
