// Kernels of a block: its norms, attention, MLP or experts, and adds.
#include <algorithm>

#include "cost_models/transformers/passes.hpp"

namespace stageline {
namespace {

// Launches of the forward of a GPT's block with plain attention, eager: fitted to steps with the
// constants of KernelRates, not counted. The passes below list 12 of its kernels, which stand for
// them; a block that lists more launches so many more.
constexpr int usual_launches = 25;
constexpr int usual_listed = 12;

int count(const std::vector<Kernel>& kernels) { return static_cast<int>(kernels.size()); }

void set_launches(LayerKernels& passes, bool fused) {
  const int listed_input_grad = count(passes.input_grad);
  const int listed_weight_grad = count(passes.weight_grad);
  if (fused) {
    // Each is one kernel.
    passes.launches_forward = count(passes.forward);
    passes.launches_input_grad = listed_input_grad;
    passes.launches_weight_grad = listed_weight_grad;
  } else {
    passes.launches_forward = usual_launches + std::max(count(passes.forward) - usual_listed, 0);
    const int backward = 2 * passes.launches_forward;
    passes.launches_input_grad =
        backward * listed_input_grad / (listed_input_grad + listed_weight_grad);
    passes.launches_weight_grad = backward - passes.launches_input_grad;
  }
  passes.floor = static_cast<double>(passes.launches_forward) / usual_launches;
}

}  // namespace

LayerKernels block_kernels(const TransformerConfig& config, const LanguageForm& form,
                           std::int64_t block) {
  const RankSizes sizes = rank_sizes(config, form);
  const BlockTraffic traffic = block_traffic(form);
  const double norm = sizes.bytes(sizes.norm_elements());
  LayerKernels passes;
  const auto add_end = [&](std::string_view behind, std::string_view sum) {
    if (config.norms_behind) add_elementwise(passes, behind, norm, traffic.norm);
    add_elementwise(passes, sum, norm, traffic.add);
  };
  add_elementwise(passes, "attention_norm", norm, traffic.norm);
  add_attention(passes, config, form, block);
  add_end("attention_norm_behind", "attention_add");
  add_elementwise(passes, "mlp_norm", norm, traffic.norm);
  if (config.has_experts(block)) {
    add_experts(passes, config, form);
  } else {
    add_mlp(passes, {"mlp_up", "mlp_activation", "mlp_down"}, sizes, config.gated, sizes.ffn,
            sizes.tokens, traffic);
  }
  add_end("mlp_norm_behind", "mlp_add");
  std::reverse(passes.input_grad.begin(), passes.input_grad.end());
  std::reverse(passes.weight_grad.begin(), passes.weight_grad.end());
  set_launches(passes, form.fused);
  return passes;
}

}  // namespace stageline
