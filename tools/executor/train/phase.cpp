// Plans a training's pipelined and plain steps.
#include "tools/executor/train/phase.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"

namespace stageline::executor {
namespace {

std::string joined_text(const std::string& a, const std::string& b) {
  if (a == "none") return b;
  return b == "none" ? a : a + "+" + b;
}

// With the program's own correction, and those of the request beside it.
Program corrected(Program program, const std::vector<const Correction*>& some) {
  ProgramSettings& settings = program.settings;
  settings.correction = joined_text(settings.correction, correction_text(some));
  const Corrections all(parse_corrections(settings.correction));
  const bool by_version = settings.weights == WeightRule::vertical_sync ||
                          settings.weights == WeightRule::double_buffer;
  if (all.predicts() && by_version) {
    throw UsageError(fmt::format(
        "correction {} predicts from the newest weights, but with weights: {} forwards read older "
        "ones; take --weights latest or stash",
        settings.correction, name(settings.weights)));
  }
  return program;
}

lab::TrainingProgram program_for(const TrainingRequest& request, std::int64_t steps) {
  try {
    return lab::training_program(request.asked, steps);
  } catch (const Deadlock& error) {
    if (request.asked.weights != WeightRule::double_buffer) throw;
    const std::string_view why = error.what();
    throw UsageError(fmt::format(
        "weights: double_buffer is for schedules whose steps have several micro-batches, like "
        "pipedream_2bw; with {} {}",
        request.asked.spec.scheduler->name, why.substr(0, why.find('\n'))));
  }
}

}  // namespace

lab::TrainingProgram corrected_program(const TrainingRequest& request, std::int64_t steps) {
  lab::TrainingProgram training = program_for(request, steps);
  training.program = corrected(std::move(training.program), request.corrections);
  return training;
}

Phase pipelined_phase(const TrainingRequest& request) {
  const lab::TrainingProgram training = corrected_program(request, request.pipelined);
  Phase phase;
  phase.partition = training.partition;
  phase.placement = training.program.placement;
  phase.weights = training.program.settings.weights;
  phase.correction = training.program.settings.correction;
  phase.plan = version_plan(training.program, versions_read(training.program, training.timeline));
  phase.versions = versions_of(training.program, training.timeline);
  phase.end = request.pipelined;
  return phase;
}

Phase plain_phase(const TrainingRequest& request, const Phase* before, int microbatches) {
  Phase phase;
  const auto layers = request.shape.layers.size();
  phase.partition =
      before != nullptr ? before->partition : Partition{std::vector<int>(layers, 0), 1};
  phase.correction = plain_correction_text(request.corrections);
  phase.plan = plain_version_plan(phase.partition.stages, microbatches, request.recipe.steps);
  phase.placement.stage.assign(as_size(phase.partition.stages), {{0}, {}, {}, {}, {}});
  phase.end = request.recipe.steps;
  phase.versions.resize(as_size(phase.partition.stages));
  return phase;
}

std::string digest(const VersionPlan& plan) {
  std::uint64_t sum = 14695981039346656037U;
  const auto add = [&](std::uint32_t value) { sum = (sum ^ value) * 1099511628211U; };
  const auto add_all = [&](const std::vector<std::uint32_t>& versions) {
    for (const std::uint32_t version : versions) add(version);
  };
  for (const StageVersionPlan& stage : plan.stage) {
    add_all(stage.forward);
    for (const auto& part : stage.input_grad) add_all(part);
    add_all(stage.weight_grad);
    for (const bool own : stage.whole_backward) add(own ? 1U : 0U);
  }
  return fmt::format("{:016x}", sum);
}

TrainingState drained(TrainingState state) {
  for (StageState& stage : state.stage) {
    StageVersion newest = std::move(stage.versions.at(stage.newest));
    stage.newest = static_cast<std::uint32_t>(state.step);
    stage.versions.clear();
    stage.versions[stage.newest] = std::move(newest);
    stage.statistics.resize(1);  // the first replica's
  }
  return state;
}

}  // namespace stageline::executor
