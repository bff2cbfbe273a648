// Kernels of a block: its norms, attention, MLP or experts, and adds.
#include <algorithm>

#include "cost_models/transformers/passes.hpp"
#include "cost_models/transformers/residual_streams.hpp"

namespace stageline {
namespace {

// Launches of the forward of a GPT's block with plain attention, eager: fitted to steps with the
// constants of KernelRates, not counted. The passes below list 12 of its kernels, which stand for
// them; a block that lists more launches so many more.
constexpr int usual_launches = 25;
constexpr int usual_listed = 12;

int count(const std::vector<Kernel>& kernels) { return static_cast<int>(kernels.size()); }

// A block of one half has half of the launches.
void set_launches(LayerKernels& passes, bool fused, int halves) {
  const int listed_input_grad = count(passes.input_grad);
  const int listed_weight_grad = count(passes.weight_grad);
  if (fused) {
    // Each is one kernel.
    passes.launches_forward = count(passes.forward);
    passes.launches_input_grad = listed_input_grad;
    passes.launches_weight_grad = listed_weight_grad;
  } else {
    const int listed = count(passes.forward) - halves * usual_listed / 2;
    passes.launches_forward = halves * usual_launches / 2 + std::max(listed, 0);
    const int backward = 2 * passes.launches_forward;
    passes.launches_input_grad =
        backward * listed_input_grad / (listed_input_grad + listed_weight_grad);
    passes.launches_weight_grad = backward - passes.launches_input_grad;
  }
  passes.floor = static_cast<double>(passes.launches_forward) / usual_launches;
}

void add_mixer(LayerKernels& passes, const TransformerConfig& config, const LanguageForm& form,
               std::int64_t block) {
  const BlockKind kind = config.kind(block);
  if (kind.attends()) add_attention(passes, config, form, block);
  if (!kind.scans()) return;
  add_linear_mixer(passes, *config.linear, rank_sizes(config, form), block_traffic(form));
}

// Casts of rows that every rank has gathered, beyond those of its own part, which the rate of the
// products holds. By compiled kernels, in passes of a byte an element: with scales of rows an
// element is read and written, 3; with scales of columns, as W reads it, it is read once before for
// the scales, 5. Forward by rows; backward the gradient both ways, and the input by columns.
constexpr TensorPasses casts_of_gathered{3, 13};

void add_casts(LayerKernels& passes, const RankSizes& sizes) {
  if (!sizes.sequence || !sizes.gathered.cast_gathered) return;
  add_elementwise(passes, "casts_of_gathered", (1 - 1 / sizes.tensor) * sizes.whole_elements(),
                  casts_of_gathered);
}

}  // namespace

LayerKernels block_kernels(const TransformerConfig& config, const LanguageForm& form,
                           std::int64_t block) {
  const RankSizes sizes = rank_sizes(config, form);
  const BlockTraffic traffic = block_traffic(form);
  const double norm = sizes.bytes(sizes.norm_elements());
  LayerKernels passes;
  const BlockKind kind = config.kind(block);
  const auto add_start = [&](std::string_view before) {
    const bool none = block == 0 && !config.first_norm && before == "attention_norm";
    add_streams_before(passes, sizes);
    if (config.norms_before && !none) add_elementwise(passes, before, norm, traffic.norm);
  };
  const auto add_end = [&](std::string_view behind, std::string_view sum) {
    if (config.norms_behind) add_elementwise(passes, behind, norm, traffic.norm);
    if (sizes.streams > 0) {
      add_streams_behind(passes, sizes);
    } else {
      add_elementwise(passes, sum, norm, traffic.add);
    }
  };
  if (kind.mixer != Mixer::none) {
    add_start("attention_norm");
    add_casts(passes, sizes);
    add_mixer(passes, config, form, block);
    add_end("attention_norm_behind", "attention_add");
  }
  if (kind.feed != Feed::none && !config.one_norm) add_start("mlp_norm");
  if (kind.feed == Feed::experts) {
    for (std::int64_t i = 0; i < config.experts->norms; ++i) {
      add_elementwise(passes, "experts_norm", norm, traffic.norm);
    }
    add_experts(passes, config, form);
  }
  if (kind.feed == Feed::dense) {
    add_casts(passes, sizes);
    add_mlp(passes, {"mlp_up", "mlp_activation", "mlp_down"}, sizes, config.gated, sizes.ffn,
            sizes.tokens, traffic);
    if (config.inner_norms) {
      add_elementwise(passes, "mlp_inner_norm", sizes.bytes(sizes.tokens * sizes.ffn),
                      traffic.norm);
    }
  }
  if (kind.feed != Feed::none) add_end("mlp_norm_behind", "mlp_add");
  std::reverse(passes.input_grad.begin(), passes.input_grad.end());
  std::reverse(passes.weight_grad.begin(), passes.weight_grad.end());
  set_launches(passes, form.fused, kind.halves());
  return passes;
}

}  // namespace stageline
