// A language model priced for a chip: a trace of one rank whose layers are the embedding, the
// blocks and the head.
#pragma once

#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/transformers/kernels.hpp"

namespace stageline {

/// Layers "embedding", "block.0" …, "head" (kind embedding, block, head), the head with the last
/// norm and the loss. Times: sums of seconds() over a pass, per layer
///   F = ((Σ + launches·kernel)⁸ + (floor·layer_floor)⁸)^⅛,  B likewise with 1.2·floor, I and W
/// with the parts of it that their launches are of B's; I + W >= B. No time grows with a rate of
/// the chip. Weights, gradients and optimizer state as roofline() has them; update as
/// KernelRates::optimizer says, on the first layer KernelRates::step besides.
/// The vocabulary is padded to a multiple of 128·tp (Megatron-LM). With `options.slice` times and
/// bytes are those of that slice of the sequences: kernels of as many tokens as it has, launches
/// and floor whole, of attention its pairs of tokens (of the mean slice, its share of them). Throws
/// UsageError where the degrees do not divide the sizes, and as roofline().
Model language_model(const TransformerConfig& config, const LanguageForm& form,
                     const DeviceKind& device, const RooflineOptions& options,
                     const KernelRates& rates, const std::string& rates_source);

}  // namespace stageline
