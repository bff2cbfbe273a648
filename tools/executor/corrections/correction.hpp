// What can be done about stale weights, one file a mitigation, each a constant like a scheduler.
// Some only choose which versions the passes read, and the program does the rest; the others
// change what a pass reads or what an update does. The pipelined and the delayed run call the same
// functions in the same order, so they agree to the last bit.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline {

/// Where an update stands, for corrections of the optimizer's step.
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

  /// What is remembered beside a version of the weights, one tensor a weight; of the memory beside
  /// the version before (empty: it was the first).
  std::vector<at::Tensor> (*remember)(const std::vector<at::Tensor>& memory,
                                      const std::vector<at::Tensor>& before,
                                      const std::vector<at::Tensor>& after) = nullptr;
  /// What F reads instead of `weights`. Not asked at delay 0, nor before the first update.
  std::vector<at::Tensor> (*for_forward)(const std::vector<at::Tensor>& weights,
                                         const std::vector<at::Tensor>& memory,
                                         int delay) = nullptr;
  /// What I, W and B read instead of `newest`, `updates` of which the forward has not seen. Not
  /// asked at 0. Then no old weights are kept.
  std::vector<at::Tensor> (*for_backward)(const std::vector<at::Tensor>& newest,
                                          const std::vector<at::Tensor>& memory,
                                          int updates) = nullptr;
  /// Not asked at delay 0.
  void (*adjust)(OptimizerStep& step, const StaleStep& at) = nullptr;
  bool needs_momentum = false;  // it speaks of Optimizer::momentum's velocity
};

/// All, in the order of --help.
const std::vector<const Correction*>& corrections();

/// "none", one name, or several joined by "+". Throws UsageError for an unknown name (with the
/// nearest), and for two that do not go together: at most one with a rule, one that remembers.
std::vector<const Correction*> parse_corrections(const std::string& text);

/// Those that the program's text says, by their names; those with a rule set its `weights`.
std::string correction_text(const std::vector<const Correction*>& some);
std::optional<WeightRule> rule_of(const std::vector<const Correction*>& some);

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
  void adjust(OptimizerStep& step, const StaleStep& at) const;

 private:
  decltype(Correction::remember) remember_ = nullptr;
  decltype(Correction::for_forward) for_forward_ = nullptr;
  decltype(Correction::for_backward) for_backward_ = nullptr;
  std::vector<decltype(Correction::adjust)> adjust_;
};

}  // namespace stageline
