// Simulates a logged training on another trace and cluster.
#include "tools/lab/training/retime.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/analysis/versions.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/lab/training/times.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::lab {
namespace {

// "0-1,2-6,7-"
std::string ranges_of(const std::vector<LoggedStage>& stages) {
  std::string text;
  for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
    text += fmt::format("{}-{},", stages[s].first_layer, stages[s].last_layer);
  }
  return text + fmt::format("{}-", stages.back().first_layer);
}

void check_cut(const Case& asked, const TrainingLog& log) {
  const std::vector<int> stage_of = lay_out(asked).plan.partition.stage_of;
  for (std::size_t s = 0; s < log.stages.size(); ++s) {
    const LoggedStage& stage = log.stages[s];
    for (int layer = stage.first_layer; layer <= stage.last_layer; ++layer) {
      if (nth(stage_of, layer) == static_cast<int>(s)) continue;
      throw UsageError(fmt::format(
          "layer {} was trained in stage {}, but {} on these devices puts it into stage {}, "
          "which is another training",
          layer, s, spelled(asked.spec), nth(stage_of, layer)));
    }
  }
}

}  // namespace

Case case_of(const TrainingLog& log, const Model& model, const Cluster& cluster) {
  const TrainingSettings& settings = log.settings;
  const int layers = static_cast<int>(model.layers.size());
  const int trained = log.stages.empty() ? layers : log.stages.back().last_layer + 1;
  if (trained != layers) {
    throw UsageError(
        fmt::format("its model {} has {} layers, but the trace of {} has {}; "
                    "name a trace of the model that was trained",
                    settings.model, trained, model.name, layers));
  }
  Case asked;
  asked.model = model;
  asked.cluster = cluster;
  const std::vector<ScheduleSpec> specs = parse_schedules(settings.schedule);
  if (specs.size() != 1) {
    throw UsageError(fmt::format("\"{}\" is not one schedule", settings.schedule));
  }
  asked.spec = specs.front();
  asked.microbatches = settings.microbatches;
  asked.weights = parse_weight_rule(settings.weights, "its weight rule");
  if (settings.pipelined == 0 || asked.spec.scheduler->assign != nullptr) return asked;
  asked.partition = log.stages.empty() ? settings.partition : ranges_of(log.stages);
  return asked;
}

std::vector<Time> ends_of(const Case& asked, const TrainingLog& log) {
  const TrainingSettings& settings = log.settings;
  if (settings.pipelined > 0) {
    check_cut(asked, log);
    return hybrid_step_ends(asked, settings.steps, settings.pipelined);
  }
  return hybrid_step_ends(asked, settings.steps, 0);
}

std::string staleness_note(const Case& asked, const TrainingLog& log) {
  // Until the pipeline has filled and emptied several times.
  const std::int64_t enough = 32 * static_cast<std::int64_t>(asked.cluster.devices.size());
  const std::int64_t steps = std::min(log.settings.pipelined, enough);
  if (steps == 0) return "";
  const TrainingProgram training = training_program(asked, steps);
  const std::vector<StageVersions> versions = versions_of(training.program, training.timeline);
  for (std::size_t s = 0; s < std::min(versions.size(), log.stages.size()); ++s) {
    const double there = versions[s].staleness_max;
    const double trained = log.stages[s].staleness_max;
    if (there == trained || (steps < log.settings.pipelined && there < trained)) continue;
    return fmt::format(
        "on these devices stage {} would be stale by {:g} update(s), but was trained with {:g}: "
        "its accuracy there is not known",
        s, there, trained);
  }
  return "";
}

void set_times(TrainingLog& log, const std::vector<Time>& ends) {
  for (std::size_t i = 0; i < log.steps.size(); ++i) log.steps[i].end = ends[i];
  for (Evaluation& one : log.evaluations) {
    one.end = one.step == 0 ? Time{} : ends[as_size(one.step) - 1];
  }
}

}  // namespace stageline::lab
