// Parses lists of corrections and applies several as one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {

namespace {

const Correction& correction_called(const std::string& name) {
  std::vector<std::string> names;
  for (const Correction* const one : corrections()) {
    if (one->name == name) return *one;
    names.emplace_back(one->name);
  }
  throw UsageError(fmt::format("there is no correction \"{}\"{}; there are none, {}", name,
                               did_you_mean(name, names), fmt::join(names, ", ")));
}

// At most one of them may have a say in `what`.
template <typename Has>
void allow_one(const std::vector<const Correction*>& some, std::string_view what, Has has) {
  const Correction* first = nullptr;
  for (const Correction* const one : some) {
    if (!has(*one)) continue;
    if (first != nullptr) {
      throw UsageError(fmt::format("corrections {} and {} both say {}; take one of them",
                                   first->name, one->name, what));
    }
    first = one;
  }
}

// The names of those that are wanted.
template <typename Wanted>
std::string joined(const std::vector<const Correction*>& some, Wanted wanted) {
  std::string text;
  for (const Correction* const one : some) {
    if (!wanted(*one)) continue;
    text += text.empty() ? "" : "+";
    text += one->name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<const Correction*> parse_corrections(const std::string& text) {
  std::vector<const Correction*> some;
  if (text == "none" || text.empty()) return some;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t to = std::min(text.find('+', from), text.size());
    const Correction& one = correction_called(text.substr(from, to - from));
    if (std::find(some.begin(), some.end(), &one) != some.end()) {
      throw UsageError(fmt::format("correction {} appears twice in \"{}\"", one.name, text));
    }
    some.push_back(&one);
    from = to + 1;
  }
  allow_one(some, "which versions are read",
            [](const Correction& c) { return c.rule.has_value() || c.for_backward != nullptr; });
  allow_one(some, "what is remembered of the last steps",
            [](const Correction& c) { return c.remember != nullptr; });
  allow_one(some, "how the velocity moves the weights",
            [](const Correction& c) { return c.needs_momentum; });
  return some;
}

std::string correction_text(const std::vector<const Correction*>& some) {
  return joined(some, [](const Correction& c) { return !c.rule; });
}

std::string plain_correction_text(const std::vector<const Correction*>& some) {
  return joined(some, [](const Correction& c) { return c.every_step; });
}

std::optional<WeightRule> rule_of(const std::vector<const Correction*>& some) {
  for (const Correction* const one : some) {
    if (one->rule) return one->rule;
  }
  return std::nullopt;
}

Corrections::Corrections(const std::vector<const Correction*>& some) {
  for (const Correction* const one : some) {
    if (one->remember != nullptr) remember_ = one->remember;
    if (one->for_forward != nullptr) for_forward_ = one->for_forward;
    if (one->for_backward != nullptr) for_backward_ = one->for_backward;
    if (one->adjust != nullptr) adjusting_.push_back(one);
  }
}

std::vector<at::Tensor> Corrections::remember(const std::vector<at::Tensor>& memory,
                                              const std::vector<at::Tensor>& before,
                                              const std::vector<at::Tensor>& after) const {
  return remember_ == nullptr ? std::vector<at::Tensor>{} : remember_(memory, before, after);
}

std::vector<at::Tensor> Corrections::for_forward(const std::vector<at::Tensor>& weights,
                                                 const std::vector<at::Tensor>& memory,
                                                 int delay) const {
  if (for_forward_ == nullptr || delay == 0 || memory.empty()) return weights;
  return for_forward_(weights, memory, delay);
}

std::vector<at::Tensor> Corrections::for_backward(const std::vector<at::Tensor>& newest,
                                                  const std::vector<at::Tensor>& memory,
                                                  int updates) const {
  if (for_backward_ == nullptr || updates <= 0) return newest;
  return for_backward_(newest, memory, updates);
}

void Corrections::adjust(OptimizerStep& step, const StaleStep& at) const {
  for (const Correction* const one : adjusting_) {
    if (at.delay > 0 || one->every_step) one->adjust(step, at);
  }
}

OptimizerStep Corrections::optimizer_step(const Recipe& recipe, std::int64_t step,
                                          int delay) const {
  OptimizerStep result;
  result.rate = rate_at(recipe, step);
  result.momentum = recipe.momentum;
  result.weight_decay = recipe.weight_decay;
  adjust(result, {delay, step, recipe.steps});
  return result;
}

}  // namespace stageline::executor
