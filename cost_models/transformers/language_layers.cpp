// Sums up the kernels of a layer, and what it keeps, holds and exchanges.
#include "cost_models/transformers/language_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/transformers/attention_rates.hpp"
#include "cost_models/transformers/rank_parameters.hpp"
#include "cost_models/transformers/rank_sizes.hpp"
#include "cost_models/transformers/residual_streams.hpp"

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

bool is_quantized_product(const Kernel& kernel, const LanguagePricing& pricing) {
  const bool product = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::grouped;
  return product && pricing.quantized() && (!kernel.wide || pricing.head_and_router);
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

// The share of the CPU's work that is left where it is recorded as graphs (half of a block's
// kernels are attention's and the router's: assumed).
double issued(CudaGraphs graphs) {
  switch (graphs) {
    case CudaGraphs::none:
      return 1;
    case CudaGraphs::partial:
      return 0.5;
    case CudaGraphs::full:
      return 0;
  }
  return 1;
}

// The time of the CPU to issue the forward.
double floor_seconds(const LayerKernels& kernels, const LanguagePricing& pricing) {
  return kernels.floor * pricing.rates.layer_floor * issued(pricing.form.graphs);
}

// Experts' products are issued once the CPU knows how many tokens each has: it has waited for the
// router, and the GPU waits for it. No part of a step can be recorded that depends on such a
// number.
double expert_seconds(const LayerKernels& kernels, const LanguagePricing& pricing) {
  if (!pricing.quantized() || pricing.form.graphs == CudaGraphs::full) return 0;
  return kernels.experts * pricing.rates.expert_floor;
}

// The CPU issues all kernels of a backward in the floor's time, and those of I and of W in their
// parts of it. So neither takes longer where kernels are faster; and where one of them waits for
// the CPU and the other does not, both take longer than B, in which the CPU issues ahead.
void set_times(Layer& layer, const LayerKernels& kernels, const LanguagePricing& pricing) {
  const KernelSums sums = sums_of(kernels, pricing);
  const auto pass = [&](double work, int launches, double floor, double experts) {
    return fitting_time(layer.name,
                        eight_norm(work + launches * pricing.launch(), floor) + experts);
  };
  const double floor = floor_seconds(kernels, pricing);
  const double experts = expert_seconds(kernels, pricing);
  layer.forward = pass(sums.forward, kernels.launches_forward, floor, experts);
  const int launches = kernels.launches_backward();
  const auto part = [&](double whole, int of) {
    return launches > 0 ? backward_floor * whole * of / launches : 0;
  };
  layer.input_grad =
      pass(sums.input_grad, kernels.launches_input_grad, part(floor, kernels.launches_input_grad),
           part(experts, kernels.launches_input_grad));
  layer.weight_grad =
      pass(sums.weight_grad, kernels.launches_weight_grad,
           part(floor, kernels.launches_weight_grad), part(experts, kernels.launches_weight_grad));
  const double work = sums.input_grad + sums.weight_grad;
  const Time whole = pass(work, launches, backward_floor * floor, backward_floor * experts);
  const Time halves = layer.input_grad + layer.weight_grad;
  layer.backward = floor > 0 ? std::min(whole, halves) : halves;  // else they differ by rounding
  layer.memory_bound = 2 * sums.elementwise > sums.forward + work;
  const double selective = sums.selective + sums.selective_kernels * pricing.launch();
  layer.selective_forward = std::min(layer.forward, fitting_time(layer.name, selective));
}

// R issues a module's kernels as F does, each with its part of the launches and of the CPU's time.
Time module_time(const Layer& layer, const BlockModule& module, const LayerKernels& kernels,
                 const LanguagePricing& pricing) {
  double work = 0;
  double listed = 0;
  for (const Kernel& kernel : kernels.forward) {
    for (const ModuleKernel& part : module.kernels) {
      if (part.name != kernel.name || part.share <= 0) continue;
      work += part.share * seconds_of(kernel, pricing);
      listed += 1;
    }
  }
  const double share = listed / static_cast<double>(kernels.forward.size());
  const double launches = share * kernels.launches_forward * pricing.launch();
  const double floor = share * kernels.floor * pricing.rates.layer_floor;
  return std::min(layer.forward, fitting_time(layer.name, eight_norm(work + launches, floor)));
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

// ---- collectives that run under products ----

// Products that read gathered rows, and those whose output is scattered.
constexpr std::array<std::string_view, 6> behind_gathers{"qkv",          "query",  "query_up",
                                                         "key_value_up", "mlp_up", "linear_in"};
constexpr std::array<std::string_view, 3> before_scatters{"projection", "mlp_down", "linear_out"};

template <class Names>
Time products_of(const Layer& layer, const std::vector<Kernel>& pass, const Names& names,
                 const LanguagePricing& pricing) {
  double sum = 0;
  for (const Kernel& kernel : pass) {
    const bool beside = std::find(names.begin(), names.end(), kernel.name) != names.end();
    if (beside) sum += seconds_of(kernel, pricing);
  }
  return fitting_time(layer.name, sum);
}

// Attention to all parts of a ring but the last, which is there when it starts.
Time attention_in_ring(const Layer& layer, const std::vector<Kernel>& pass,
                       const LanguagePricing& pricing) {
  double sum = 0;
  for (const Kernel& kernel : pass) {
    if (kernel.kind == KernelKind::attention_flash) sum += seconds_of(kernel, pricing);
  }
  const double ranks = rank_sizes(pricing.config, pricing.form).context_ring;
  return fitting_time(layer.name, sum * (ranks - 1) / ranks);
}

// Backward, gathers stand before the products that the forward's scatters stand behind; in a ring,
// keys and values and their gradients share attention's time.
void set_beside(Layer& layer, const LayerKernels& kernels, const LanguagePricing& pricing) {
  for (LayerCollective& collective : layer.collectives) {
    if (collective.hidden <= 0) continue;
    if (collective.group == Dimension::context) {
      collective.forward_beside = attention_in_ring(layer, kernels.forward, pricing);
      collective.backward_beside = attention_in_ring(layer, kernels.input_grad, pricing) / 2;
      continue;
    }
    const auto first = [&](const auto& pass) {
      return products_of(layer, pass, behind_gathers, pricing);
    };
    const auto last = [&](const auto& pass) {
      return products_of(layer, pass, before_scatters, pricing);
    };
    const bool gathers = collective.kind == CollectiveKind::all_gather;
    collective.forward_beside = gathers ? first(kernels.forward) : last(kernels.forward);
    collective.backward_beside = gathers ? last(kernels.input_grad) : first(kernels.input_grad);
  }
  // R runs a ring beside attention, too.
  for (LayerModule& module : layer.modules) {
    for (LayerCollective& collective : module.collectives) {
      if (collective.use.blocks == 0) continue;
      collective.forward_beside = attention_in_ring(layer, kernels.forward, pricing);
    }
  }
}

// ---- FLOPs as the literature counts them: a rank's share of those of the undivided model ----

std::int64_t rank_flops(const std::string& layer, const LanguagePricing& pricing, double model) {
  const Sharding& sharding = pricing.form.sharding;
  const auto seq = static_cast<double>(pricing.form.seq);
  const double slice = pricing.form.slice.tokens_of(seq);
  return fitting_flops(layer, model / sharding.tensor / sharding.context * slice / seq);
}

double flops_of(const LanguagePricing& pricing, std::int64_t layers) {
  if (!pricing.form.documents.empty()) {
    double flops = 0;
    for (const std::int64_t tokens : pricing.form.documents) {
      flops += model_flops(pricing.published, layers, tokens, pricing.form.batch);
    }
    return flops;
  }
  return model_flops(pricing.published, layers, pricing.form.seq, pricing.form.batch);
}

// `both`: forward and backward, which is twice the forward.
void set_flops(Layer& layer, const LanguagePricing& pricing, double both) {
  layer.forward_flops = rank_flops(layer.name, pricing, both / 3);
  layer.backward_flops = rank_flops(layer.name, pricing, both * 2 / 3);
}

// FLOPs of attention's two products, forward.
double attention_flops(const LanguagePricing& pricing, std::int64_t block) {
  const auto of = [&](std::int64_t tokens) {
    return 2 * static_cast<double>(pricing.form.batch) * static_cast<double>(tokens) *
           attention_products(pricing.config, block, tokens);
  };
  if (pricing.form.documents.empty()) return of(pricing.form.seq);
  double flops = 0;
  for (const std::int64_t tokens : pricing.form.documents) flops += of(tokens);
  return flops;
}

// ---- bytes ----

void set_stash(Layer& layer, const KeptBytes& kept) {
  const auto bytes = [&](double count) {
    return fitting_bytes(layer.name, "its activations", count);
  };
  layer.stash_input_grad = bytes(kept.input_grad);
  layer.stash_weight_grad = bytes(kept.weight_grad);
  layer.stash_gradient = bytes(kept.gradient);
  layer.keys_values = bytes(kept.keys_values);
  layer.earlier_gradients = bytes(kept.earlier_gradients);
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
  if (config.kind(block).feed == Feed::none) return 0;
  double wide = static_cast<double>(config.ffn);
  if (config.has_experts(block)) {
    const Experts& experts = *config.experts;
    const double routed = static_cast<double>(experts.chosen) * static_cast<double>(experts.ffn) *
                          expert_imbalance(pricing.form);
    wide = std::max(routed, static_cast<double>(experts.shared_ffn));
  }
  return pricing.bytes(pricing.tokens() * tensors * wide / pricing.form.sharding.tensor);
}

// Buffers of context-parallel ranks in attention, forward and again backward: what all-to-alls
// bring, and the keys and values of the whole sequence, which are gathered; in a ring those of two
// ranks, one of which arrives.
double context_buffers(const LanguagePricing& pricing, const RankSizes& sizes) {
  if (sizes.context <= 1) return 0;
  const double keys = sizes.read_keys() + sizes.read_values();
  const double exchanged = sizes.context_heads > 1 ? sizes.tokens * sizes.exchanged() : 0;
  if (sizes.context_ring <= 1) return sizes.bytes(exchanged);
  const bool gathers = pricing.form.context_exchange == ContextExchange::all_gather;
  return sizes.bytes(exchanged + (gathers ? sizes.batch * sizes.seq : 2 * sizes.tokens) * keys);
}

// Those of queries, keys, values and attention's output, and where the scores are in memory those
// of scores and probabilities. Among context-parallel ranks keys and values are gathered, and their
// gradients are of as many tokens until they are reduced. A slice makes them for the slices before
// it, too.
double attention_gradients(const LanguagePricing& pricing, const RankSizes& sizes) {
  const double own = sizes.queries() + sizes.attended();
  const double keys = sizes.read_keys() + sizes.read_values();
  double vectors = sizes.bytes(sizes.tokens * own + sizes.keys_reached() * keys);
  if (sizes.context_ring > 1) {
    vectors = sizes.bytes(sizes.tokens * own) + 2 * context_buffers(pricing, sizes);
  } else if (sizes.context > 1) {
    vectors += context_buffers(pricing, sizes);
  }
  if (pricing.form.attention != AttentionKernel::plain) return vectors;
  return vectors + sizes.bytes(2 * sizes.tokens * sizes.seq * sizes.heads);
}

// In a linear layer those of what its first product and the convolution make, and of its output.
double mixer_gradients(const LanguagePricing& pricing, const RankSizes& sizes, std::int64_t block) {
  const BlockKind kind = pricing.config.kind(block);
  const double attention = kind.attends() ? attention_gradients(pricing, sizes) : 0;
  if (!kind.scans()) return attention;
  const RankLinear rank = rank_linear(*pricing.config.linear, sizes);
  return attention + sizes.bytes(sizes.tokens * (rank.columns + rank.convolved + rank.values));
}

// FLOPs of a rank as the literature counts them.
std::int64_t module_flops(const Layer& layer, const BlockModule& module,
                          const LayerKernels& kernels, const LanguagePricing& pricing,
                          std::int64_t block) {
  double products = 0;
  for (const Kernel& kernel : kernels.forward) {
    if (kernel.kind != KernelKind::gemm && kernel.kind != KernelKind::grouped) continue;
    for (const ModuleKernel& part : module.kernels) {
      if (part.name == kernel.name) products += part.share * kernel.flops;
    }
  }
  const std::int64_t flops = fitting_flops(layer.name, products);
  if (!module.attention) return flops;
  return flops + rank_flops(layer.name, pricing, attention_flops(pricing, block));
}

void set_modules(Layer& layer, const LayerKernels& kernels, const LanguagePricing& pricing,
                 std::int64_t block) {
  const Bytes kept = layer.stash_input_grad + layer.stash_weight_grad;
  for (const BlockModule& part : block_modules(pricing.config, pricing.form, block)) {
    LayerModule module;
    module.name = part.name;
    // With plain attention it is what selective recomputation repeats.
    const bool selective = part.attention && layer.selective_forward > Time{};
    module.forward =
        selective ? layer.selective_forward : module_time(layer, part, kernels, pricing);
    module.stash = std::min(fitting_bytes(layer.name, "its activations", part.stash), kept);
    module.flops = module_flops(layer, part, kernels, pricing, block);
    module.collectives = part.collectives;
    layer.modules.push_back(std::move(module));
  }
}

}  // namespace

bool is_wide_block(const LanguagePricing& pricing, std::int64_t block) {
  return pricing.quantized() && (block < pricing.form.wide_start ||
                                 block >= pricing.config.layers - pricing.form.wide_end);
}

double peak_of_kernel(const Kernel& kernel, const LanguagePricing& pricing) {
  return is_quantized_product(kernel, pricing) ? pricing.product_peak : pricing.attention_peak;
}

double seconds_of(const Kernel& kernel, const LanguagePricing& pricing) {
  KernelRates rates = pricing.rates;
  if (is_quantized_product(kernel, pricing)) rates.gemm = pricing.product_share;
  if (kernel.kind == KernelKind::attention_flash && pricing.curves != nullptr) {
    const AttentionCurves& curves = *pricing.curves;
    rates.attention_flash =
        rates.attention_kernel *
        share_of(kernel.attention.backward ? curves.backward : curves.forward, kernel.attention);
  }
  return seconds(kernel, rates, peak_of_kernel(kernel, pricing), pricing.base.bytes_per_second,
                 pricing.form.alignment);
}

LanguagePricing pricing_of_block(const LanguagePricing& given, std::int64_t block) {
  LanguagePricing pricing = given;
  if (!is_wide_block(pricing, block)) return pricing;
  pricing.form.product_bytes = 0;
  pricing.form.gathered = {};
  pricing.product_peak = pricing.attention_peak;
  pricing.product_share = pricing.rates.gemm;
  pricing.rates.expert_floor = 0;  // nothing is cast
  return pricing;
}

Layer block_layer(const LanguagePricing& given, std::int64_t block) {
  const LanguagePricing pricing = pricing_of_block(given, block);
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
  const RankSizes sizes = rank_sizes(config, pricing.form, block);
  const double rows = pricing.bytes(sizes.norm_elements());
  const auto bytes = [&](double count) {
    return fitting_bytes(layer.name, "its activations", count);
  };
  const double sent = pricing.config.kind(block).shortcut ? 2 : 1;  // and the experts' output
  layer.output = bytes(pricing.bytes(sent * sizes.residual_elements()));
  // Attention's or the MLP's output before it is added, or what attention reads.
  const bool attends = config.kind(block).attends();
  layer.forward_workspace = bytes(std::max(rows, attends ? context_buffers(pricing, sizes) : 0.0));
  set_backward_workspace(layer, bytes(std::max(mlp_gradients(pricing, block),
                                               mixer_gradients(pricing, sizes, block))));
  set_flops(layer, pricing, flops_of(pricing, block + 1) - flops_of(pricing, block));
  if (layer.selective_forward > Time{}) {
    layer.selective_flops = rank_flops(layer.name, pricing, attention_flops(pricing, block));
  }
  layer.collectives = block_collectives(config, pricing.form, block);
  set_modules(layer, kernels, pricing, block);
  set_beside(layer, kernels, pricing);
  return layer;
}

IssueTimes issue_times(const LanguagePricing& pricing, std::int64_t block) {
  const LayerKernels kernels = block_kernels(pricing.config, pricing.form, block);
  const KernelSums sums = sums_of(kernels, pricing);
  return {sums.forward + kernels.launches_forward * pricing.launch(),
          floor_seconds(kernels, pricing) + expert_seconds(kernels, pricing)};
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
  layer.output = fitting_bytes(layer.name, "its activations",
                               pricing.bytes(rank_sizes(config, pricing.form).residual_elements()));
  layer.collectives = embedding_collectives(config, pricing.form);
  return layer;
}

Layer prediction_layer(const LanguagePricing& pricing, int number) {
  const TransformerConfig& config = pricing.config;
  Layer layer = block_layer(pricing, config.layers);
  layer.name = fmt::format("mtp.{}", number);
  layer.kind = "mtp";
  layer.modules.clear();
  layer.collectives = prediction_collectives(config, pricing.form);
  const LayerKernels kernels = prediction_kernels(config, pricing.form);
  set_times(layer, kernels, pricing);
  set_stash(layer, kept_by_prediction(config, pricing.form));
  set_modules(layer, kernels, pricing, config.layers);
  const auto tensor = static_cast<std::int64_t>(pricing.form.sharding.tensor);
  const std::int64_t h = config.hidden;
  layer.parameters += 2 * h * ((h + tensor - 1) / tensor) + 3 * parameters_of_last_norm(config) +
                      head_stream_parameters(config);
  // The embedding is the first stage's; a head with tied weights has it here already.
  const std::int64_t copy =
      config.tied ? 0 : parameters_of_embedding(config, pricing.form.sharding);
  set_state(layer, layer.parameters + copy, pricing.base);
  set_update(layer, layer.parameters + copy, pricing);
  layer.tied_weights = Bytes{copy * pricing.base.format.bytes};
  // The model's residual and this module's output, those of the modules before it, and the streams
  // that the next one reads.
  const RankSizes sizes = rank_sizes(config, pricing.form);
  const bool streams_go_on = config.streams > 0 && number + 1 < pricing.form.predictions;
  const double handed =
      sizes.residual_elements() * (streams_go_on ? 2 : 1) + (number + 1) * sizes.norm_elements();
  layer.output = fitting_bytes(layer.name, "its activations", pricing.bytes(handed));
  const double tokens =
      static_cast<double>(pricing.form.batch) * static_cast<double>(pricing.form.seq);
  const double hidden = static_cast<double>(h);
  set_flops(layer, pricing,
            flops_of(pricing, config.layers + 1) - flops_of(pricing, config.layers) +
                3 * 2 * tokens * (1 + std::max(sizes.streams, 1.0)) * hidden * hidden);
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
    const auto tensor = static_cast<std::int64_t>(pricing.form.sharding.tensor);
    layer.parameters = held - (config.vocab + tensor - 1) / tensor * config.hidden;
    layer.tied_weights = layer.weights - Bytes{layer.parameters * pricing.base.format.bytes};
  }
  set_stash(layer, kept_by_head(config, pricing.form));
  const double logits =
      pricing.tokens() * static_cast<double>(config.vocab) / pricing.form.sharding.tensor;
  layer.output = fitting_bytes(layer.name, "its activations", 4 * pricing.tokens());  // the loss
  // The gradients, which a fused loss writes where the logits were.
  const double each = pricing.form.sharding.tensor > 1 ? pricing.form.split_loss_gradient_bytes
                                                       : pricing.form.loss_gradient_bytes;
  const double gradients = pricing.form.fused_loss ? 0 : each * logits;
  set_backward_workspace(layer, fitting_bytes(layer.name, "its activations", gradients));
  set_flops(layer, pricing, (1 + pricing.form.predictions) * flops_of(pricing, 0));
  layer.collectives = head_collectives(config, pricing.form);
  return layer;
}

}  // namespace stageline
