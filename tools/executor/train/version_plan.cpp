// Makes version plans from the versions that a program reads.
#include "tools/executor/train/version_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

void note_oldest(StageVersionPlan& stage) {
  const std::size_t total = stage.forward.size();
  stage.oldest.resize(total);
  for (std::size_t m = total; m-- > 0;) {
    std::uint32_t least = std::min(stage.forward[m], stage.weight_grad[m]);
    for (const auto& part : stage.input_grad) least = std::min(least, part[m]);
    stage.oldest[m] = m + 1 == total ? least : std::min(least, stage.oldest[m + 1]);
  }
}

// The most updates that a forward is behind its own, over the second half: the warm-up is over.
int steady_delay(const StageVersionPlan& stage) {
  int most = 0;
  for (std::size_t m = stage.forward.size() / 2; m < stage.forward.size(); ++m) {
    const auto own = static_cast<int>(m) / stage.group;
    most = std::max(most, own - static_cast<int>(stage.forward[m]));
  }
  return most;
}

}  // namespace

std::uint32_t VersionPlan::version_after(std::size_t s, std::int64_t steps) const {
  return static_cast<std::uint32_t>(steps * microbatches / stage[s].group);
}

std::int64_t VersionPlan::round() const {
  std::int64_t all = microbatches;
  for (const StageVersionPlan& one : stage) {
    all = std::lcm(std::lcm(all, std::int64_t{one.group}), std::int64_t{one.replicas});
  }
  return all / microbatches;
}

VersionPlan version_plan(const Program& program, const std::vector<VersionRead>& reads) {
  VersionPlan table;
  table.by_step = updates_by_step(program.settings.weights);
  table.microbatches = table.by_step ? program.microbatches : 1;
  const std::size_t total = program.total_microbatches();
  for (int s = 0; s < program.stages(); ++s) {
    const StagePlace& place = nth(program.placement.stage, s);
    StageVersionPlan& stage = table.stage.emplace_back();
    stage.group = microbatches_per_update(program, s);
    stage.replicas = static_cast<int>(place.replicas.size());
    stage.forward.resize(total);
    stage.weight_grad.resize(total);
    stage.whole_backward.resize(total);
  }
  std::pair<int, int> at{-1, -1};  // stage and device: reads stand together by both
  std::vector<bool> descended;     // whether I has been there, by micro-batch
  for (const VersionRead& read : reads) {
    StageVersionPlan& stage = table.stage[read.op.stage];
    const std::uint32_t m = read.op.microbatch;
    if (std::exchange(at, {read.op.stage, read.device}) !=
        std::pair{int{read.op.stage}, read.device}) {
      descended.assign(total, false);
    }
    const auto note_input_grad = [&](std::size_t part) {
      if (stage.input_grad.size() <= part) {
        stage.input_grad.resize(part + 1, std::vector<std::uint32_t>(total));
        stage.on_weight_device.resize(part + 1);
      }
      stage.input_grad[part][m] = read.version;
    };
    switch (class_of(read.op.kind)) {
      case OpClass::forward:
        stage.forward[m] = read.version;
        break;
      case OpClass::backward:
        if (read.op.kind == OpKind::backward) {
          stage.fused = true;
          note_input_grad(0);
          stage.on_weight_device[0] = true;
          stage.weight_grad[m] = read.version;
        } else if (read.op.kind == OpKind::weight_grad) {
          stage.weight_grad[m] = read.version;
          stage.whole_backward[m] = !descended[m];
        } else {
          note_input_grad(read.op.part);
          const StagePlace& place = program.placement.stage[read.op.stage];
          const std::vector<int>& updaters = place.homes(Role::weight_grad);
          stage.on_weight_device[read.op.part] =
              std::find(updaters.begin(), updaters.end(), read.device) != updaters.end();
          descended[m] = true;
        }
        break;
      case OpClass::recompute:
      case OpClass::update:
      case OpClass::reduction:
      case OpClass::message:
      case OpClass::copy:
        break;
    }
  }
  for (StageVersionPlan& stage : table.stage) {
    note_oldest(stage);
    stage.delay = steady_delay(stage);
  }
  return table;
}

VersionPlan plain_version_plan(int stages, int microbatches, std::int64_t steps) {
  StageVersionPlan stage;
  stage.group = microbatches;
  stage.fused = true;
  stage.on_weight_device = {true};
  stage.whole_backward.resize(as_size(steps * microbatches));
  for (std::int64_t m = 0; m < steps * microbatches; ++m) {
    stage.forward.push_back(static_cast<std::uint32_t>(m / microbatches));
  }
  stage.weight_grad = stage.oldest = stage.forward;
  stage.input_grad = {stage.forward};
  return {microbatches, microbatches > 1, std::vector<StageVersionPlan>(as_size(stages), stage)};
}

}  // namespace stageline::executor
