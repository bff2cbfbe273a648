// Puts the layers' moments on the op's time.
#include "cost_models/memory/layer_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {

Bytes fitting(Wide bytes, std::size_t stage) {
  constexpr Wide most = std::numeric_limits<std::int64_t>::max();
  if (bytes > most || bytes < -most) {
    throw UsageError(fmt::format(
        "stage {}: the sum of its layers' stash, workspace and outputs does not fit in 64 bits",
        stage));
  }
  return Bytes{static_cast<std::int64_t>(bytes)};
}

LayerSteps::LayerSteps(std::vector<Wide> held, std::int64_t counted, std::size_t stage)
    : held_(std::move(held)), counted_(counted), stage_(stage) {}

void LayerSteps::add(int layer, Time time, Bytes workspace, Beside beside) {
  const Wide below = nth(held_, layer) + beside.below;
  const Wide above = nth(held_, layer + 1) + beside.above;
  time_.push_back(static_cast<double>(time.count()));
  beyond_.push_back(fitting(std::max(below, above) + workspace.count - counted_, stage_));
}

HeldSteps LayerSteps::finish(Bytes& most) const {
  double sum = 0;
  for (const double time : time_) sum += time;
  HeldSteps steps;
  double until = 0;
  most = Bytes{};
  for (std::size_t i = 0; i < beyond_.size(); ++i) {
    most = std::max(most, beyond_[i]);
    until += sum > 0 ? time_[i] / sum : 1.0 / static_cast<double>(beyond_.size());
    if (!steps.empty() && steps.back().beyond == beyond_[i]) {
      steps.back().until = until;
    } else {
      steps.push_back({until, beyond_[i]});
    }
  }
  if (!steps.empty()) steps.back().until = 1;
  return steps;
}

}  // namespace stageline
