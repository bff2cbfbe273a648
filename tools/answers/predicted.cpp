#include "tools/answers/predicted.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "schedulers/parts/spread_vocabulary.hpp"
#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "sim/varied_costs.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/study.hpp"

namespace stageline::answers {
namespace {

// "0-3 | 4-7" as --partition takes it.
std::string cut_of_flag(const Partition& partition) {
  std::string text = print(partition);
  for (std::size_t at = text.find(" | "); at != std::string::npos; at = text.find(" | ")) {
    text.replace(at, 3, ",");
  }
  return text;
}

Case predicted_case(const PredictionQuestion& question, const Setting& setting, int devices) {
  const ScheduleSpec schedule = schedules_of(question).front();
  if (vocabulary_barriers(schedule.knobs) != VocabularyBarriers::whole) {
    throw UsageError(fmt::format(
        "{}: the models that are run here have their head on one device; such a schedule can only "
        "be simulated",
        spelled(schedule)));
  }
  Case asked = planner::searched_case(question.setting, setting, schedule, devices);
  if (question.imitated) {
    asked.cluster.interference.clear();
    asked.cluster.handover = {};
  }
  return asked;
}

}  // namespace

PredictionAnswer answer(const PredictionQuestion& question) {
  const int replicas = question.replicas;
  Setting setting = opened_setting(question);
  if (question.devices % replicas != 0) {
    throw UsageError(fmt::format(
        "{} devices cannot be divided among {} replicas of the pipeline; give a multiple of {}",
        question.devices, replicas, replicas));
  }
  Case one = predicted_case(question, setting, question.devices / replicas);
  Outcome outcome = study(one);
  if (replicas == 1) return {std::move(setting), std::move(one), std::move(outcome)};
  Case all = predicted_case(question, setting, question.devices);
  all.program = replicated(outcome.program, replicas);
  all.partition = cut_of_flag(outcome.plan.partition);
  all.microbatches = all.program->microbatches;
  all.kind_of = side_by_side(all.kind_of, replicas);
  outcome = study(all);
  return {std::move(setting), std::move(all), std::move(outcome)};
}

}  // namespace stageline::answers
