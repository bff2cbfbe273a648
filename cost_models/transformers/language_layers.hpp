// The layers of a language model, priced for one rank. For the files of this folder only.
#pragma once

#include <cstdint>

#include "cost_models/pricing.hpp"
#include "cost_models/roofline.hpp"
#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "sim/model.hpp"

namespace stageline {

struct AttentionCurves;

/// The sizes, and what prices them.
struct LanguagePricing {
  TransformerConfig config;     // with the padded vocabulary
  TransformerConfig published;  // with its own
  LanguageForm form;
  Pricing base;
  KernelRates rates;
  double attention_peak = 0;  // FLOPs a second: that of 16 bits where products have fewer
  double product_peak = 0;    // of quantized products: that of 8 bits, also where they have 4
  double product_share = 0;   // of it that a large one reaches, casts included
  const AttentionCurves* curves = nullptr;  // of the attention kernel; null: a constant
  bool head_and_router = false;             // whether theirs are quantized, too

  bool quantized() const { return base.format.products_only; }

  double tokens() const {  // of a rank, in a slice where sequences are cut
    return static_cast<double>(form.batch) * form.slice.tokens_of(static_cast<double>(form.seq)) /
           form.sharding.context;
  }
  double norm_tokens() const {
    return form.sharding.sequence ? tokens() / form.sharding.tensor : tokens();
  }
  // Bytes of a tensor in the number format.
  double bytes(double elements) const { return form.element_bytes * elements; }
  double launch() const { return rates.kernel + base.overhead; }
};

/// Throws as language_model().
LanguagePricing language_pricing(const TransformerConfig& config, LanguageForm form,
                                 const DeviceKind& device, const RooflineOptions& options,
                                 const KernelRates& rates);
/// The same, of a block that stays in 16 bits though others are quantized its own.
LanguagePricing pricing_of_block(const LanguagePricing& pricing, std::int64_t block);

/// FLOPs a second of the data type that its products are in.
double peak_of_kernel(const Kernel& kernel, const LanguagePricing& pricing);
/// Without its launch.
double seconds_of(const Kernel& kernel, const LanguagePricing& pricing);

/// The optimizer's step on the embedding, with KernelRates::step.
Layer embedding_layer(const LanguagePricing& pricing);
/// Whether the block's products are in 16 bits though others are quantized.
bool is_wide_block(const LanguagePricing& pricing, std::int64_t block);
Layer block_layer(const LanguagePricing& pricing, std::int64_t block);
/// The module that predicts one more token, of `number` 0 or more: its output is the hidden state
/// of the blocks and those of all modules so far, which the head reads.
Layer prediction_layer(const LanguagePricing& pricing, int number);
Layer head_layer(const LanguagePricing& pricing);

/// Seconds of a block's forward: of its kernels, and of the CPU to issue them, during which it
/// computes nothing else.
struct IssueTimes {
  double kernels = 0;
  double issue = 0;
};
IssueTimes issue_times(const LanguagePricing& pricing, std::int64_t block);

}  // namespace stageline
