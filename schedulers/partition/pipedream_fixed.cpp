// PipeDream's recurrence where the workers of every stage are given: A(s, j) is the smallest
// bottleneck of stages 0..s on layers 0..j,
//
//   A(0, j) = T(0..j, r_0)
//   A(s, j) = min over the split i of max(A(s-1, i), 2 a_i / (B r_s), T(i+1..j, r_s))
//
// O(L² S); T grows as the split moves forward in the order of layers, which skips most of it. Of
// equal splits the earliest, the later stages first, as in the other program: for the replicas that
// one chose, the cuts are the same.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedulers/partition/pipedream_level.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

struct FixedEntry {
  std::int64_t time = LevelTimes::never;  // ps
  std::size_t split = 0;                  // last layer before the last stage
};

}  // namespace

void check_fixed_replicas(const PipedreamQuestion& question) {
  std::int64_t devices = 0;
  int fewest = question.replicas.front();
  for (const int count : question.replicas) {
    devices += count;
    fewest = std::min(fewest, count);
  }
  const std::string text = fmt::format("{}", fmt::join(question.replicas, "-"));
  if (question.levels.size() != 1 || devices != question.levels[0].machines || fewest < 1) {
    throw UsageError(
        fmt::format("pipedream: given replicas need one level that holds as many devices, at least "
                    "1 a stage; {} are {} device{}, but there {} {} level{} with {}",
                    text, devices, devices == 1 ? "" : "s",
                    question.levels.size() == 1 ? "is" : "are", question.levels.size(),
                    question.levels.size() == 1 ? "" : "s", pipedream_devices(question)));
  }
  if (question.replicas.size() <= question.time.size()) return;
  throw UsageError(fmt::format("pipedream: replicas {} are {} stages, but there {} {} layer{}",
                               text, question.replicas.size(),
                               question.time.size() == 1 ? "is" : "are", question.time.size(),
                               question.time.size() == 1 ? "" : "s"));
}

PipedreamPlan pipedream_fixed_plan(const PipedreamQuestion& question) {
  const LevelTimes level = level_times(question, 0);
  const std::size_t layers = question.time.size();
  const std::size_t stages = question.replicas.size();
  const auto stage_time = [&](std::size_t i, std::size_t j, std::int64_t replicas) {
    return level.stage_time(level.compute[j + 1] - level.compute[i], i, j, replicas);
  };
  PlanSteps steps(question);
  std::vector<std::vector<FixedEntry>> best(stages, std::vector<FixedEntry>(layers));
  for (std::size_t j = 0; j < layers; ++j) {
    best[0][j].time = stage_time(0, j, question.replicas[0]);
  }
  for (std::size_t s = 1; s < stages; ++s) {
    const std::int64_t replicas = question.replicas[s];
    for (std::size_t j = s; j < layers; ++j) {
      FixedEntry& here = best[s][j];
      std::size_t tried = 0;
      for (std::size_t split = j; split-- > s - 1;) {
        const std::int64_t stage = stage_time(split + 1, j, replicas);
        if (stage > here.time) break;  // and those of earlier splits take longer still
        const std::int64_t time =
            std::max({best[s - 1][split].time, level.move[split] / replicas, stage});
        if (time <= here.time) here = {time, split};
        ++tried;
      }
      steps.add(tried);
    }
  }
  PipedreamPlan plan;
  plan.bottleneck = Time{best[stages - 1][layers - 1].time};
  plan.single = Time{level.compute.back()};
  std::size_t last = layers - 1;
  int device = pipedream_devices(question);
  for (std::size_t s = stages; s-- > 0;) {
    const std::size_t split = best[s][last].split;
    PipedreamStage stage{s == 0 ? 0 : static_cast<int>(split) + 1, static_cast<int>(last), {}};
    device -= question.replicas[s];
    for (int d = 0; d < question.replicas[s]; ++d) stage.devices.push_back(device + d);
    plan.stages.push_back(stage);
    last = split;
  }
  std::reverse(plan.stages.begin(), plan.stages.end());
  return plan;
}

}  // namespace stageline
