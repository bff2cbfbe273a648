// Rates of fused attention by kernel, chip, length of a sequence, heads and their width.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cost_models/transformers/kernels.hpp"

namespace stageline {

/// Share of the 16-bit peak that a pass reaches, of the FLOPs below the diagonal:
///   most · s/(s + half) · min(1, s·heads·sequences/full) · by width
/// with a sequence of s tokens. By width: 1 of heads of 128, `narrow` of 64, and `latent` of latent
/// attention, whose keys are wider than its values.
struct AttentionCurve {
  double most = 0;
  double half = 0;  // tokens at which it reaches half
  double full = 0;  // queries of all heads that occupy the chip; 0: any do
  double narrow = 1;
  double latent = 1;
};
struct AttentionCurves {
  AttentionCurve forward;
  AttentionCurve backward;
  std::string_view source;
};
/// Kernels by the word that `attention=` has for them: flash, plain, fa2, fa3, cudnn.
struct NamedAttention {
  std::string_view name;
  AttentionKernel kernel = AttentionKernel::flash;
};
std::span<const NamedAttention> attention_kernels();
std::string_view name(AttentionKernel kernel);
/// Whether its rate is a curve.
bool has_curve(AttentionKernel kernel);

/// Null where nobody measured the kernel on the kind's architecture. fa2, fa3 and cudnn have some,
/// flash and plain none: their rates are constants.
const AttentionCurves* find_attention_curves(AttentionKernel kernel, std::string_view kind);
/// That the curve is another chip's of the architecture; else empty.
std::string attention_note(AttentionKernel kernel, std::string_view kind);

double share_of(const AttentionCurve& curve, const AttentionSize& size);

}  // namespace stageline
