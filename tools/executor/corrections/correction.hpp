// Corrections for stale weights, one file each, a constant like a scheduler. Some only choose which
// versions the passes read, and the program does the rest; the others change what a pass reads or
// what an update does. The pipelined and the delayed run call the same functions in the same order,
// so they agree to the last bit.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.hpp"
#include "tools/executor/tensors/tensor_model.hpp"
#include "tools/executor/train/recipe.hpp"

namespace stageline::executor {

/// The place of an update in its training, for corrections of the optimizer's step.
struct StaleStep {
  int delay = 0;           // updates behind which the stage's forwards read, in the steady state
  std::int64_t step = 0;   // of the training, from 0
  std::int64_t steps = 0;  // of the whole training
};

/// Tensors are of one layer, in the order of its weights. Null: that is left as it is.
struct Correction {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::optional<WeightRule> rule;  // the program's

  /// The memory beside a version of the weights, one tensor a weight, from the memory beside the
  /// version before it (empty at the first).
  std::vector<at::Tensor> (*remember)(const std::vector<at::Tensor>& memory,
                                      const std::vector<at::Tensor>& before,
                                      const std::vector<at::Tensor>& after) = nullptr;
  /// What F reads instead of `weights`. Not called at delay 0, nor before the first update.
  std::vector<at::Tensor> (*for_forward)(const std::vector<at::Tensor>& weights,
                                         const std::vector<at::Tensor>& memory,
                                         int delay) = nullptr;
  /// What I, W and B read instead of `newest`, which is `updates` updates newer than the forward's
  /// weights. Not called at 0. No old weights are kept then.
  std::vector<at::Tensor> (*for_backward)(const std::vector<at::Tensor>& newest,
                                          const std::vector<at::Tensor>& memory,
                                          int updates) = nullptr;
  /// Changes the optimizer's step. Not called at delay 0, but where it is for `every_step`.
  void (*adjust)(OptimizerStep& step, const StaleStep& at) = nullptr;
  bool needs_momentum = false;  // it corrects the velocity of Optimizer::momentum
  /// What the source leaves open and this constant fills in, for --corrections; empty: nothing.
  std::string_view rebuilt{};
  /// It is an optimizer's step of its own: for stages of delay 0, and for plain training, too.
  bool every_step = false;
};

/// All, in the order of --corrections: the table that meson.build lists.
std::span<const Correction* const> corrections();

/// "none", one name, or several joined by "+". Throws UsageError for an unknown name (with the
/// nearest), and for two that do not go together: at most one with a rule, one that remembers, one
/// that corrects the velocity.
std::vector<const Correction*> parse_corrections(const std::string& text);

/// The names for the program's text, without those with a rule, which set its `weights` instead.
std::string correction_text(const std::vector<const Correction*>& some);
std::optional<WeightRule> rule_of(const std::vector<const Correction*>& some);
/// The names of those that plain training keeps, as for correction_text().
std::string plain_correction_text(const std::vector<const Correction*>& some);

/// Several as one.
class Corrections {
 public:
  explicit Corrections(const std::vector<const Correction*>& some);

  bool remembers() const { return remember_ != nullptr; }
  bool predicts() const { return for_forward_ != nullptr; }
  bool rebuilds() const { return for_backward_ != nullptr; }

  std::vector<at::Tensor> remember(const std::vector<at::Tensor>& memory,
                                   const std::vector<at::Tensor>& before,
                                   const std::vector<at::Tensor>& after) const;
  std::vector<at::Tensor> for_forward(const std::vector<at::Tensor>& weights,
                                      const std::vector<at::Tensor>& memory, int delay) const;
  std::vector<at::Tensor> for_backward(const std::vector<at::Tensor>& newest,
                                       const std::vector<at::Tensor>& memory, int updates) const;
  /// Adjusts the numbers of an update, by how late its gradients are.
  void adjust(OptimizerStep& step, const StaleStep& at) const;
  /// The numbers of the training's step `step`, from 0, on a stage whose forwards read `delay`
  /// updates behind.
  OptimizerStep optimizer_step(const Recipe& recipe, std::int64_t step, int delay) const;

 private:
  decltype(Correction::remember) remember_ = nullptr;
  decltype(Correction::for_forward) for_forward_ = nullptr;
  decltype(Correction::for_backward) for_backward_ = nullptr;
  std::vector<const Correction*> adjusting_;
};

}  // namespace stageline::executor
