// Learning rates by step.
#include "tools/executor/train/recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stageline::executor {

double rate_at(const Recipe& recipe, std::int64_t step) {
  double rate = recipe.rate;
  if (step < recipe.warm_up) {
    rate *= static_cast<double>(step + 1) / static_cast<double>(recipe.warm_up);
  }
  for (const std::int64_t milestone : recipe.milestones) {
    if (step >= milestone) rate *= recipe.factor;
  }
  return rate;
}

std::string print(const Recipe& recipe) {
  std::string text = fmt::format("rate {:g}, momentum {:g}", recipe.rate, recipe.momentum);
  if (recipe.weight_decay != 0) text += fmt::format(", weight decay {:g}", recipe.weight_decay);
  if (recipe.warm_up > 0) text += fmt::format(", warm-up {}", recipe.warm_up);
  if (!recipe.milestones.empty()) {
    text += fmt::format(", ×{:g} at {}", recipe.factor, fmt::join(recipe.milestones, " "));
  }
  return text;
}

}  // namespace stageline::executor
