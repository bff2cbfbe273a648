// Reads a device's versions from the plan of a training.
#include "tools/executor/run/planned_versions.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline::executor {

PlannedVersions::PlannedVersions(const Job& job, int device)
    : job_(job),
      at_start_(as_size(job.program.stages())),
      oldest_read_(at_start_.size()),
      passes_done_(at_start_.size()) {
  if (!job.plan) return;
  const TrainingPlan& plan = *job.plan;
  const std::int64_t from = plan.start.step;
  first_microbatch_ = static_cast<std::uint32_t>(from * plan.versions.microbatches);
  for (std::size_t s = 0; s < at_start_.size(); ++s) {
    at_start_[s] = plan.versions.version_after(s, from);
  }
  for (const Op op : nth(job.program.ops, device)) {
    if (op.kind == OpKind::update || lane_of(op.kind) != LaneKind::compute) continue;
    oldest_read_[op.stage].push_back(version_of(op).value_or(at_start_[op.stage]));
  }
  for (std::vector<std::uint32_t>& oldest : oldest_read_) {
    for (std::size_t i = oldest.size(); i-- > 1;)
      oldest[i - 1] = std::min(oldest[i - 1], oldest[i]);
  }
}

std::optional<std::uint32_t> PlannedVersions::version_of(Op op) const {
  if (!job_.plan) return std::nullopt;
  const StageVersionPlan& plan = job_.plan->versions.stage[op.stage];
  const std::uint32_t m = microbatch_of(op);
  switch (class_of(op.kind)) {
    case OpClass::forward:
    case OpClass::recompute:
      return plan.forward[m];
    case OpClass::backward:
      if (op.kind == OpKind::input_grad) return plan.input_grad[op.part][m];
      if (op.kind == OpKind::weight_grad && !plan.whole_backward[m]) return std::nullopt;
      return plan.weight_grad[m];
    case OpClass::update:
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return std::nullopt;
  }
  return std::nullopt;
}

std::uint32_t PlannedVersions::oldest_needed(int stage, std::uint32_t newest) const {
  std::uint32_t needed = std::min(newest, oldest_read_after(stage, newest));
  const std::vector<std::uint32_t>& here = nth(oldest_read_, stage);
  const std::size_t done = nth(passes_done_, stage);
  if (done < here.size()) needed = std::min(needed, here[done]);
  return needed;
}

std::uint32_t PlannedVersions::oldest_read_after(int stage, std::uint32_t update) const {
  const StageVersionPlan& plan = nth(job_.plan->versions.stage, stage);
  const std::size_t next = std::size_t{update} * as_size(plan.group);
  return next < plan.oldest.size() ? plan.oldest[next] : update;
}

}  // namespace stageline::executor
