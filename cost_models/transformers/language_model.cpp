// Checks the degrees of a language model, and puts its layers together.
#include "cost_models/transformers/language_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "cost_models/network/dispatch.hpp"
#include "cost_models/pricing.hpp"
#include "cost_models/slices.hpp"
#include "cost_models/transformers/attention_rates.hpp"
#include "cost_models/transformers/context_exchange.hpp"
#include "cost_models/transformers/language_form.hpp"
#include "cost_models/transformers/language_layers.hpp"
#include "cost_models/transformers/priced_language.hpp"
#include "cost_models/transformers/product_recipes.hpp"
#include "cost_models/transformers/rank_sizes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::int64_t vocab_padding = 128;  // Megatron-LM's --make-vocab-size-divisible-by

// Says who waits for whom where each rank has one piece of a sequence.
std::string context_balance_note(const LanguageForm& form) {
  if (form.context_balanced) return "";
  if (form.sharding.context == 1) {
    return "cp_balance=none has no effect without context parallelism (--cp)";
  }
  if (form.attention == AttentionKernel::plain ||
      form.context_exchange == ContextExchange::all_to_all) {
    return "cp_balance=none has no effect: ranks compute the scores of all pairs, or have the whole "
           "sequence of some heads";
  }
  return "each cp rank has one piece of the sequence, and all wait for the last one, which attends "
         "to most";
}

std::string tp_overlap_note(const LanguageForm& form) {
  if (form.tp_overlap <= 0) return "";
  if (form.sharding.tensor == 1)
    return "tp_overlap has no effect without tensor parallelism (--tp)";
  if (!form.sharding.sequence) {
    return "tp_overlap has no effect without sequence parallelism (--sequence-parallel): products "
           "hide its gathers and scatters (user buffers), no all-reduces";
  }
  return fmt::format(
      "{:g} of the tensor-parallel gathers and scatters around attention's and a dense MLP's "
      "products run under these, as given",
      form.tp_overlap);
}

TransformerConfig with_padded_vocab(TransformerConfig config, std::int64_t tensor) {
  const std::int64_t step = vocab_padding * tensor;
  config.vocab = (config.vocab + step - 1) / step * step;
  return config;
}

// Equal blocks are priced once.
class BlockLayers {
 public:
  explicit BlockLayers(const LanguagePricing& pricing) : pricing_(pricing) {}

  Layer layer(std::int64_t block) {
    const BlockKind kind = pricing_.config.kind(block);
    const bool wide = is_wide_block(pricing_, block);
    const auto known = std::find_if(priced_.begin(), priced_.end(), [&](const Priced& one) {
      return one.kind == kind && one.wide == wide;
    });
    const bool first = known == priced_.end();
    if (first) priced_.push_back({kind, wide, block_layer(pricing_, block)});
    Layer layer = first ? priced_.back().layer : known->layer;
    layer.name = fmt::format("block.{}", block);
    return layer;
  }

 private:
  struct Priced {
    BlockKind kind;
    bool wide = false;
    Layer layer;
  };
  const LanguagePricing& pricing_;
  std::vector<Priced> priced_;
};

// ---- provenance ----

std::int64_t parameters_of_predictions(const LanguagePricing& pricing) {
  TransformerConfig config = pricing.published;
  config.prediction_modules = pricing.form.predictions;
  return prediction_parameters(config);
}

// "plain attention at 0.35"; by a curve its shares for whole sequences.
std::string attention_text(const LanguagePricing& pricing) {
  const KernelRates& rates = pricing.rates;
  const AttentionKernel kernel = pricing.form.attention;
  if (pricing.curves == nullptr) {
    return kernel == AttentionKernel::plain
               ? fmt::format("plain attention at {:g}", rates.attention_plain)
               : fmt::format("fused attention at {:g}", rates.attention_flash);
  }
  const RankSizes sizes = rank_sizes(pricing.config, pricing.form);
  const AttentionSize size{sizes.seq, sizes.tokens * sizes.heads, sizes.key_width,
                           sizes.value_width, false};
  return fmt::format("attention by {} at {:.3g} forward and {:.3g} backward", name(kernel),
                     rates.attention_kernel * share_of(pricing.curves->forward, size),
                     rates.attention_kernel * share_of(pricing.curves->backward, size));
}

std::string method_of(const LanguagePricing& pricing) {
  const KernelRates& rates = pricing.rates;
  std::string method = fmt::format(
      "{}, {}, {}, products of m x k by k x n at {:g} of the peak "
      "over 1 + {:g}/m + {:g}(1/n + 1/k), {} of it, elementwise kernels at {:g} of "
      "the memory's rate, {:g} us a kernel, at least {:g} ms a block",
      language_method, pricing.base.format.name, name(pricing.base.optimizer), rates.gemm,
      rates.gemm_rows, rates.gemm_columns, attention_text(pricing), rates.memory,
      pricing.launch() * 1e6, rates.layer_floor * 1e3);
  if (pricing.quantized() && !pricing.head_and_router) {
    method += fmt::format(", quantized products at {:.3g} of the fp8 peak over the same",
                          pricing.product_share);
  }
  if (pricing.form.alignment) {
    method +=
        fmt::format(", {:g} times as long where an extent is no multiple of 64", rates.misaligned);
  }
  return method;
}

// The blocks whose forward takes the CPU longer to issue than the GPU to compute.
void add_notes_on_issue(const LanguagePricing& pricing, std::vector<std::string>& notes) {
  std::array<bool, 2> seen{};
  for (std::int64_t i = 0; i < pricing.config.layers; ++i) {
    const bool experts = pricing.config.has_experts(i);
    if (std::exchange(seen[experts ? 1 : 0], true)) continue;
    const IssueTimes times = issue_times(pricing, i);
    if (times.issue <= times.kernels) continue;
    notes.push_back(
        fmt::format("a block{} waits for the CPU: its forward is issued in {:.3g} ms, and its "
                    "kernels take {:.3g} ms (--cuda-graphs)",
                    experts ? " with experts" : "", times.issue * 1e3, times.kernels * 1e3));
  }
}

// What an option of experts leaves out or assumes; that it has no effect, where it has none.
void add_expert_notes(std::vector<std::string>& notes, const LanguagePricing& pricing) {
  const LanguageForm& form = pricing.form;
  const bool routed = pricing.config.experts.has_value();
  const bool parallel = routed && form.sharding.expert > 1;
  const double load = expert_imbalance(form);
  if (form.imbalance > 1 && !parallel) {
    notes.emplace_back("imbalance has no effect without expert-parallel ranks (--ep)");
  } else if (form.imbalance > 1 && load == form.imbalance) {
    notes.push_back(fmt::format("the most loaded rank's experts take {:g} times the mean's tokens",
                                form.imbalance));
  }
  if (form.capacity > 0 && !routed) {
    notes.emplace_back("capacity has no effect without experts");
  } else if (form.capacity > 0 && load < form.capacity) {
    notes.push_back(fmt::format(
        "capacity {:g} drops no tokens: the most loaded experts take {:g} times the mean (imbalance)",
        form.capacity, load));
  } else if (form.capacity > 0) {
    notes.push_back(fmt::format(
        "experts take at most {:g} times the mean's tokens (capacity): the most loaded rank drops "
        "{:.3g} % of its, and the FLOPs of those are counted all the same",
        form.capacity,
        100 * (1 - load / std::max(parallel ? form.imbalance : 1.0, form.capacity))));
  }
  if (form.expert_padding > 1) {
    notes.push_back(routed ? fmt::format("rows of each expert are padded to a multiple of {}: {:g} "
                                         "more in the mean; their bytes are not kept",
                                         form.expert_padding, (form.expert_padding - 1) / 2.0)
                           : std::string("expert_padding has no effect without experts"));
  }
  if (!parallel) {
    if (!form.dispatcher.empty() || form.narrow_dispatch) {
      notes.emplace_back("dispatch has no effect without expert-parallel ranks (--ep)");
    }
    return;
  }
  if (const Dispatcher* const by = find_dispatcher(form.dispatcher)) {
    const Experts& experts = *pricing.config.experts;
    const bool limited = experts.chosen_groups < experts.groups;
    notes.push_back(fmt::format(
        "{} sends a token once to each machine that has experts for it: experts are chosen evenly{}, "
        "both legs run at once, links reach what was measured on H100 and H800, B200 and GB200 (of "
        "other chips what the cluster states), and its SMs slow compute in overlapped pairs alone",
        by->title,
        limited ? fmt::format(", in {} of {} groups", experts.chosen_groups, experts.groups) : ""));
  }
  if (form.narrow_dispatch) {
    notes.emplace_back(
        "tokens go to their experts in 8 bits, a scale for 128 of them, and back in 16; their casts "
        "are not priced");
  }
}

void add_precision_notes(std::vector<std::string>& notes, const LanguagePricing& pricing,
                         const DeviceKind& device) {
  const NumberFormat& format = pricing.base.format;
  if (std::string note = tf32_note(device, format, false); !note.empty()) {
    notes.push_back(std::move(note));
  }
  const LanguageForm& form = pricing.form;
  if (!pricing.quantized()) {
    if (form.wide_start + form.wide_end > 0) {
      notes.push_back(fmt::format(
          "bf16_start and bf16_end have no effect: no product is quantized in {}", format.name));
    }
    return;
  }
  const ProductRecipe& recipe = *find_product_recipe(format.name);
  if (recipe.head_and_router) {
    const bool gathered = form.sharding.tensor > 1 && form.sharding.sequence;
    notes.push_back(fmt::format(
        "products are in fp8, attention's in bf16; activations and weights take 2 bytes{}",
        gathered ? ", and are gathered in 16 bits, as fp8 names no recipe: with fp8-current, "
                   "fp8-delayed or mxfp8 most are gathered in 8"
                 : ""));
    if (form.wide_start + form.wide_end == 0) return;
  } else {
    notes.push_back(fmt::format(
        "products of blocks are in {0}, those of attention, head and router in bf16; a product "
        "keeps {1:g} bytes an element for W, other activations take 2; so do weights, whose "
        "quantized copies --precision {0} counts",
        recipe.name, form.product_bytes));
    if (const std::string note = product_speed(recipe, device.name).note; !note.empty()) {
      notes.push_back(note);
    }
  }
  if (form.wide_start + form.wide_end > 0) {
    notes.push_back(fmt::format("products of {} blocks at the start and {} at the end are in bf16",
                                form.wide_start, form.wide_end));
  }
}

// What of the blocks is assumed, and what of the file is left out.
void add_kind_notes(std::vector<std::string>& notes, const TransformerConfig& config) {
  if (config.name == config.source) {  // a config.json
    const std::int64_t all = parameters(config);
    const std::int64_t active = active_parameters(config);
    notes.push_back(
        fmt::format("a {} model of {} parameters{}", config.family, all,
                    active == all ? "" : fmt::format(", {} active on a token", active)));
  }
  notes.insert(notes.end(), config.notes.begin(), config.notes.end());
  if (has_linear_blocks(config) && config.linear->kind != LinearKind::kimi_delta) {
    notes.emplace_back(
        "the scan of linear layers is assumed to be bound by memory: it reads queries, keys and "
        "values and writes its output once, and a state in fp32 a chunk of tokens; their products "
        "are exact");
  }
  if (config.linear && config.linear->kind == LinearKind::selective) {
    notes.emplace_back(
        "of the layers of Mamba 1 among tp ranks the sum that makes steps, B and C is left out: "
        "a few hundred numbers a token");
  }
  if (!config.causal) {
    notes.emplace_back(
        "an encoder: tokens attend to those behind them, too, and the loss is of all tokens' "
        "logits, as transformers computes it; one of the masked tokens alone takes fewer");
  }
  if (config.latent && config.latent->index_heads > 0) {
    notes.push_back(fmt::format(
        "attention is sparse: an indexer scores all keys, and a token attends to {} of them; that "
        "reads them as fast as within a window is assumed",
        config.latent->index_keys));
  }
  if (config.compressed) {
    notes.push_back(fmt::format(
        "attention is within {} tokens and to compressed keys: of {} tokens each, of which an "
        "indexer chooses {}, or of {} each; that they are read as fast as within a window is "
        "assumed",
        config.window, config.compressed->sparse_rate, config.compressed->index_keys,
        config.compressed->heavy_rate));
  }
  if (config.streams > 0) {
    notes.push_back(fmt::format(
        "the residual has {} streams, which messages between stages carry; fused kernels mix them, "
        "and they are kept, as is assumed",
        config.streams));
  }
}

std::vector<std::string> notes_of(const LanguagePricing& pricing, const DeviceKind& device) {
  const LanguageForm& form = pricing.form;
  std::vector<std::string> notes;
  if (pricing.config.vocab != pricing.published.vocab) {
    notes.push_back(fmt::format("the vocabulary of {} is padded to {}, a multiple of {}·tp",
                                pricing.published.vocab, pricing.config.vocab, vocab_padding));
  }
  if (!pricing.config.headless.empty()) {
    notes.push_back(fmt::format(
        "architectures is {}, which has no head: that of a language model is priced, over the "
        "vocabulary",
        pricing.config.headless));
  }
  add_kind_notes(notes, pricing.published);
  if (form.predictions > 0) {
    notes.push_back(fmt::format(
        "mtp is {}: behind the blocks {} ({:.3g} billion parameters), and the head computes logits "
        "and loss {} times",
        form.predictions,
        form.predictions == 1 ? "a module predicts one more token"
                              : "modules predict one more token each",
        static_cast<double>(parameters_of_predictions(pricing)) / 1e9, form.predictions + 1));
    if (pricing.config.tied) {
      notes.emplace_back(
          "the modules of mtp read the head's copy of the embedding: they are on its stage");
    }
  } else if (pricing.config.prediction_modules > 0) {
    notes.push_back(fmt::format(
        "num_nextn_predict_layers is {}: multi-token prediction is not priced (about {:.3g} "
        "billion parameters, and its logits)",
        pricing.config.prediction_modules,
        static_cast<double>(prediction_parameters(pricing.config)) / 1e9));
  }
  if (form.attention == AttentionKernel::plain) {
    notes.emplace_back("attention is plain: its seq x seq probabilities are written and kept");
  }
  const Sharding& sharding = form.sharding;
  if (sharding.tensor > 1 || sharding.context > 1 || sharding.expert > 1 || sharding.folded()) {
    notes.push_back(fmt::format(
        "the layers are those of one rank: tp {}{}, cp {}, ep {}{}", sharding.tensor,
        sharding.sequence ? " with sequence parallelism" : "", sharding.context, sharding.expert,
        sharding.folded() ? fmt::format(", etp {}", sharding.expert_tensor) : ""));
  }
  add_expert_notes(notes, pricing);
  for (const std::string& note :
       {tp_overlap_note(form), context_exchange_note(pricing.config, form),
        context_balance_note(form)}) {
    if (!note.empty()) notes.push_back(note);
  }
  if (pricing.curves != nullptr) {
    notes.push_back(
        fmt::format("rates of attention by {}: {}", name(form.attention), pricing.curves->source));
    if (std::string note = attention_note(form.attention, device.name); !note.empty()) {
      notes.push_back(std::move(note));
    }
  }
  add_precision_notes(notes, pricing, device);
  add_notes_on_issue(pricing, notes);
  if (pricing.base.format.master) notes.emplace_back(master_copy_note);
  return notes;
}

Provenance provenance_of(const LanguagePricing& pricing, const DeviceKind& device,
                         const std::string& rates_source) {
  Provenance p;
  p.origin = Origin::estimated;
  p.device = device_title(device);
  p.method = method_of(pricing);
  p.source = fmt::format("sizes: {}; rates of kernels: {}; peaks: {}", pricing.config.source,
                         rates_source, device.source.empty() ? "unknown" : device.source);
  p.notes = notes_of(pricing, device);
  return p;
}

void set_product_rates(LanguagePricing& pricing, const DeviceKind& device,
                       const RooflineOptions& options) {
  const int batch = static_cast<int>(pricing.form.batch);
  const auto peak_in = [&](const char* dtype) {
    RooflineOptions asked = options;
    asked.dtype = dtype;
    return pricing_of(device, asked, product_formats(), batch, "adam").flops_per_second;
  };
  pricing.attention_peak = peak_in(peak_of(device, "bf16") != nullptr ? "bf16" : "fp16");
  pricing.product_peak = peak_in("fp8");
  const ProductRecipe& recipe = *find_product_recipe(pricing.base.format.name);
  pricing.product_share = pricing.rates.gemm_8bit * product_speed(recipe, device.name).factor *
                          (recipe.four_bits ? pricing.rates.gemm_4bit : 1);
  pricing.head_and_router = recipe.head_and_router;
  pricing.form.product_bytes = recipe.kept_bytes;
  pricing.form.gathered = recipe.gathered;
}

const AttentionCurves& curves_on(const DeviceKind& device, AttentionKernel kernel) {
  if (const AttentionCurves* const curves = find_attention_curves(kernel, device.name)) {
    return *curves;
  }
  throw UsageError(fmt::format(
      "nobody measured attention={} on device \"{}\": it is known on {}; give attention=flash, "
      "whose rate is attention_flash",
      name(kernel), device.name,
      kernel == AttentionKernel::cudnn ? "Hopper and Blackwell" : "Hopper"));
}

}  // namespace

LanguagePricing language_pricing(const TransformerConfig& config, LanguageForm form,
                                 const DeviceKind& device, const RooflineOptions& options,
                                 const KernelRates& rates) {
  check(config);
  if (form.seq == 0) form.seq = config.seq;
  form.sharding.sequence = form.sharding.sequence && form.sharding.tensor > 1;
  if (!form.sharding.folded()) form.sharding.expert_tensor = 0;
  form.slice = options.slice;
  form.documents = options.documents;
  check_form(config, form);
  LanguagePricing pricing;
  pricing.config = with_padded_vocab(config, form.sharding.tensor);
  pricing.published = config;
  const int batch = static_cast<int>(form.batch);
  pricing.base = pricing_of(device, options, product_formats(), batch, "adam");
  form.batch = pricing.base.batch;
  form.element_bytes = static_cast<double>(pricing.base.format.bytes);
  form.operand_bytes = pricing.base.format.products_only ? 1 : form.element_bytes;
  pricing.form = form;
  pricing.rates = rates;
  if (pricing.form.wide_start + pricing.form.wide_end > config.layers) {
    throw UsageError(fmt::format(
        "{}: bf16_start and bf16_end are blocks of {}, and {} and {} are more; give fewer",
        config.name, config.layers, pricing.form.wide_start, pricing.form.wide_end));
  }
  if (has_curve(form.attention)) pricing.curves = &curves_on(device, form.attention);
  pricing.attention_peak = pricing.base.flops_per_second;
  if (pricing.quantized()) set_product_rates(pricing, device, options);
  return pricing;
}

Model language_model(const TransformerConfig& config, const LanguageForm& form,
                     const DeviceKind& device, const RooflineOptions& options,
                     const KernelRates& rates, const std::string& rates_source) {
  const LanguagePricing pricing = language_pricing(config, form, device, options, rates);
  Model model;
  model.name = config.name;
  model.batch = static_cast<int>(pricing.form.batch);
  model.sample = "sequence";
  model.layers.reserve(as_size(config.layers + 2));
  model.layers.push_back(embedding_layer(pricing));
  BlockLayers blocks(pricing);
  for (std::int64_t i = 0; i < config.layers; ++i) model.layers.push_back(blocks.layer(i));
  for (int i = 0; i < pricing.form.predictions; ++i) {
    model.layers.push_back(prediction_layer(pricing, i));
  }
  model.layers.push_back(head_layer(pricing));
  model.input = fitting_bytes("the input", "its bytes", 8 * pricing.tokens());  // token ids
  model.provenance = provenance_of(pricing, device, rates_source);
  model.sharding = pricing.form.sharding;
  model.tokens = pricing.form.seq;
  model.parameters = parameters(config) + parameters_of_predictions(pricing);
  model.peak_flops = pricing.base.peak_flops;
  return model;
}

}  // namespace stageline
