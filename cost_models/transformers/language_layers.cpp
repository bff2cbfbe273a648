// Sums up the kernels of a layer, and what it keeps, holds and exchanges.
#include "cost_models/transformers/language_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost_models/transformers/attention_rates.hpp"
#include "cost_models/transformers/rank_parameters.hpp"
#include "cost_models/transformers/rank_sizes.hpp"

namespace stageline {
namespace {

constexpr double optimizer_bytes = 30;  // a parameter, of Adam with a 16-bit copy
constexpr double backward_floor = 1.2;  // of the forward's

// ---- time ----

// The greater of both, smoothly: a CPU that issues kernels as fast as they run delays some.
double eight_norm(double x, double y) {
  const double most = std::max(x, y);
  if (most <= 0) return 0;
  return most * std::pow(std::pow(x / most, 8) + std::pow(y / most, 8), 1.0 / 8);
}

double seconds_of(const Kernel& kernel, const LanguagePricing& pricing) {
  KernelRates rates = pricing.rates;
  double peak = pricing.attention_peak;
  if (kernel.kind == KernelKind::gemm && pricing.quantized() &&
      (!kernel.wide || pricing.head_and_router)) {
    peak = pricing.product_peak;
    rates.gemm = pricing.product_share;
  }
  if (kernel.kind == KernelKind::attention_flash && pricing.curves != nullptr) {
    const AttentionCurves& curves = *pricing.curves;
    rates.attention_flash =
        rates.attention_kernel *
        share_of(kernel.attention.backward ? curves.backward : curves.forward, kernel.attention);
  }
  return seconds(kernel, rates, peak, pricing.base.bytes_per_second, pricing.form.alignment);
}

// Sums over the passes of one layer, without launches and floor.
struct KernelSums {
  double forward = 0;
  double input_grad = 0;
  double weight_grad = 0;
  double elementwise = 0;  // of all three
  double selective = 0;    // of the forward
  int selective_kernels = 0;
};

KernelSums sums_of(const LayerKernels& kernels, const LanguagePricing& pricing) {
  KernelSums sums;
  const auto add = [&](const std::vector<Kernel>& pass, double& sum) {
    for (const Kernel& kernel : pass) {
      const double time = seconds_of(kernel, pricing);
      sum += time;
      if (kernel.kind == KernelKind::elementwise) sums.elementwise += time;
    }
  };
  add(kernels.forward, sums.forward);
  add(kernels.input_grad, sums.input_grad);
  add(kernels.weight_grad, sums.weight_grad);
  for (const Kernel& kernel : kernels.forward) {
    if (!kernel.selective) continue;
    sums.selective += seconds_of(kernel, pricing);
    ++sums.selective_kernels;
  }
  return sums;
}

// The CPU issues all kernels of a backward in the floor's time, and those of I and of W in their
// parts of it. So neither takes longer where kernels are faster; and where one of them waits for
// the CPU and the other does not, both take longer than B, in which the CPU issues ahead.
void set_times(Layer& layer, const LayerKernels& kernels, const LanguagePricing& pricing) {
  const KernelSums sums = sums_of(kernels, pricing);
  const auto pass = [&](double work, int launches, double floor) {
    return fitting_time(layer.name, eight_norm(work + launches * pricing.launch(), floor));
  };
  const double floor = kernels.floor * pricing.rates.layer_floor;
  layer.forward = pass(sums.forward, kernels.launches_forward, floor);
  const int launches = kernels.launches_backward();
  const auto part = [&](int of) {
    return launches > 0 ? backward_floor * floor * of / launches : 0;
  };
  layer.input_grad =
      pass(sums.input_grad, kernels.launches_input_grad, part(kernels.launches_input_grad));
  layer.weight_grad =
      pass(sums.weight_grad, kernels.launches_weight_grad, part(kernels.launches_weight_grad));
  const double work = sums.input_grad + sums.weight_grad;
  const Time whole = pass(work, launches, backward_floor * floor);
  const Time halves = layer.input_grad + layer.weight_grad;
  layer.backward = floor > 0 ? std::min(whole, halves) : halves;  // else they differ by rounding
  layer.memory_bound = 2 * sums.elementwise > sums.forward + work;
  const double selective = sums.selective + sums.selective_kernels * pricing.launch();
  layer.selective_forward = std::min(layer.forward, fitting_time(layer.name, selective));
}

// The optimizer moves as many bytes as its state and number format need, in proportion to Adam's.
void set_update(Layer& layer, std::int64_t parameters, const LanguagePricing& pricing) {
  const NumberFormat bf16{"bf16", 2, true, false};
  const double share =
      static_cast<double>(update_bytes(pricing.base.format, pricing.base.optimizer)) /
      static_cast<double>(update_bytes(bf16, Optimizer::adam));
  const double each = pricing.rates.optimizer > 0 ? pricing.rates.optimizer
                                                  : optimizer_bytes / pricing.base.bytes_per_second;
  layer.update = fitting_time(layer.name, static_cast<double>(parameters) * each * share);
}

// ---- FLOPs as the literature counts them: a rank's share of those of the undivided model ----

std::int64_t rank_flops(const std::string& layer, const LanguagePricing& pricing, double model) {
  const Sharding& sharding = pricing.form.sharding;
  return fitting_flops(layer, model / sharding.tensor / sharding.context / pricing.form.slices);
}

double flops_of(const LanguagePricing& pricing, std::int64_t layers) {
  TransformerConfig config = pricing.published;
  config.layers = layers;
  return model_flops(config, pricing.form.seq, pricing.form.batch);
}

// `both`: forward and backward, which is twice the forward.
void set_flops(Layer& layer, const LanguagePricing& pricing, double both) {
  layer.forward_flops = rank_flops(layer.name, pricing, both / 3);
  layer.backward_flops = rank_flops(layer.name, pricing, both * 2 / 3);
}

// FLOPs of attention's two products, forward.
double attention_flops(const LanguagePricing& pricing, std::int64_t block) {
  return 2 * static_cast<double>(pricing.form.batch) * static_cast<double>(pricing.form.seq) *
         attention_products(pricing.config, block, pricing.form.seq);
}

// ---- bytes ----

void set_stash(Layer& layer, const KeptBytes& kept) {
  const auto bytes = [&](double count) {
    return fitting_bytes(layer.name, "its activations", count);
  };
  layer.stash_input_grad = bytes(kept.input_grad);
  layer.stash_weight_grad = bytes(kept.weight_grad);
  layer.stash_gradient = bytes(kept.gradient);
  layer.selective_stash =
      std::min(bytes(kept.selective), layer.stash_input_grad + layer.stash_weight_grad);
}

void set_backward_workspace(Layer& layer, Bytes bytes) {
  layer.backward_workspace = layer.input_grad_workspace = layer.weight_grad_workspace = bytes;
}

// The gradients of an MLP's inner tensors: of what the first product made, and what the second one
// reads; with experts, for all tokens that a rank's experts are sent.
double mlp_gradients(const LanguagePricing& pricing, std::int64_t block) {
  const TransformerConfig& config = pricing.config;
  const int tensors = config.gated ? 3 : 2;
  double wide = static_cast<double>(config.ffn);
  if (config.has_experts(block)) {
    const Experts& experts = *config.experts;
    const double routed = static_cast<double>(experts.chosen) * static_cast<double>(experts.ffn) *
                          expert_imbalance(pricing.form);
    wide = std::max(routed, static_cast<double>(experts.shared_ffn));
  }
  return pricing.bytes(pricing.tokens() * tensors * wide / pricing.form.sharding.tensor);
}

// The keys and values of the whole sequence, which context-parallel ranks gather for attention,
// forward and again backward.
double gathered_keys(const RankSizes& sizes) {
  if (sizes.context <= 1) return 0;
  return sizes.bytes(sizes.batch * sizes.seq * (sizes.keys() + sizes.values()));
}

// Those of queries, keys, values and attention's output, and where the scores are in memory those
// of scores and probabilities. Among context-parallel ranks keys and values are gathered, and their
// gradients are of the whole sequence until they are reduced. A slice makes them for the slices
// before it, too.
double attention_gradients(const LanguagePricing& pricing, const RankSizes& sizes) {
  const double own = sizes.queries() + sizes.attended();
  const double keys = sizes.keys() + sizes.values();
  const double vectors = sizes.context > 1
                             ? sizes.bytes(sizes.tokens * own) + 2 * gathered_keys(sizes)
                             : sizes.bytes(sizes.tokens * (own + sizes.slices * keys));
  if (pricing.form.attention != AttentionKernel::plain) return vectors;
  return vectors + sizes.bytes(2 * sizes.tokens * sizes.seq * sizes.heads);
}

}  // namespace

bool is_wide_block(const LanguagePricing& pricing, std::int64_t block) {
  return pricing.quantized() && (block < pricing.form.wide_start ||
                                 block >= pricing.config.layers - pricing.form.wide_end);
}

Layer block_layer(const LanguagePricing& given, std::int64_t block) {
  LanguagePricing pricing = given;
  if (is_wide_block(pricing, block)) {
    pricing.form.product_bytes = 0;
    pricing.product_peak = pricing.attention_peak;
    pricing.product_share = pricing.rates.gemm;
  }
  const TransformerConfig& config = pricing.config;
  Layer layer;
  layer.name = fmt::format("block.{}", block);
  layer.kind = "block";
  const LayerKernels kernels = block_kernels(config, pricing.form, block);
  set_times(layer, kernels, pricing);
  const RankParameters own = parameters_of_block(config, pricing.form.sharding, block);
  layer.parameters = own.all;
  layer.expert_parameters = own.experts;
  set_state(layer, own.all, pricing.base);
  set_update(layer, own.all, pricing);
  set_stash(layer, kept_by_block(config, pricing.form, block));
  const double rows = pricing.bytes(pricing.norm_tokens() * static_cast<double>(config.hidden));
  const auto bytes = [&](double count) {
    return fitting_bytes(layer.name, "its activations", count);
  };
  layer.output = bytes(rows);
  const RankSizes sizes = rank_sizes(config, pricing.form);
  // Attention's or the MLP's output before it is added, or what attention reads.
  layer.forward_workspace = bytes(std::max(rows, gathered_keys(sizes)));
  set_backward_workspace(
      layer, bytes(std::max(mlp_gradients(pricing, block), attention_gradients(pricing, sizes))));
  set_flops(layer, pricing, flops_of(pricing, block + 1) - flops_of(pricing, block));
  if (layer.selective_forward > Time{}) {
    layer.selective_flops = rank_flops(layer.name, pricing, attention_flops(pricing, block));
  }
  layer.collectives = block_collectives(config, pricing.form, block);
  return layer;
}

Layer embedding_layer(const LanguagePricing& pricing) {
  const TransformerConfig& config = pricing.config;
  Layer layer;
  layer.name = layer.kind = "embedding";
  set_times(layer, embedding_kernels(config, pricing.form), pricing);
  const std::int64_t own = parameters_of_embedding(config, pricing.form.sharding);
  layer.parameters = own;
  set_state(layer, own, pricing.base);
  set_update(layer, own, pricing);
  layer.update = fitting_time(layer.name, to_seconds(layer.update) + pricing.rates.step);
  set_stash(layer, kept_by_embedding(config, pricing.form));
  // Token ids need no gradient: all of the backward is W.
  layer.weight_grad = layer.backward;
  layer.input_grad = Time{};
  layer.stash_weight_grad += layer.stash_input_grad;
  layer.stash_input_grad = Bytes{};
  layer.output =
      fitting_bytes(layer.name, "its activations",
                    pricing.bytes(pricing.norm_tokens() * static_cast<double>(config.hidden)));
  layer.collectives = embedding_collectives(config, pricing.form);
  return layer;
}

Layer head_layer(const LanguagePricing& pricing) {
  const TransformerConfig& config = pricing.config;
  Layer layer;
  layer.name = layer.kind = "head";
  layer.recompute = Time{1};  // as good as none: checkpointing repeats blocks, and keeps the logits
  set_times(layer, head_kernels(config, pricing.form), pricing);
  const std::int64_t held = parameters_of_head(config, pricing.form.sharding);
  set_state(layer, held, pricing.base);
  set_update(layer, held, pricing);
  layer.parameters = held;
  if (config.tied) {
    layer.parameters = parameters_of_last_norm(config);
    layer.tied_weights = layer.weights - Bytes{layer.parameters * pricing.base.format.bytes};
  }
  set_stash(layer, kept_by_head(config, pricing.form));
  const double logits =
      pricing.tokens() * static_cast<double>(config.vocab) / pricing.form.sharding.tensor;
  layer.output = fitting_bytes(layer.name, "its activations", 4 * pricing.tokens());  // the loss
  set_backward_workspace(layer, fitting_bytes(layer.name, "its activations", 4 * logits));
  set_flops(layer, pricing, flops_of(pricing, 0));
  layer.collectives = head_collectives(config, pricing.form);
  return layer;
}

}  // namespace stageline
