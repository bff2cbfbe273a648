// The curves, as fitted to measurements.
#include "cost_models/transformers/attention_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "cost_models/transformers/kernel_rates.hpp"

namespace stageline {
namespace {

constexpr double usual_width = 128;

constexpr std::array named_kernels{
    NamedAttention{"flash", AttentionKernel::flash},
    NamedAttention{"plain", AttentionKernel::plain}, NamedAttention{"fa2", AttentionKernel::fa2},
    NamedAttention{"fa3", AttentionKernel::fa3}, NamedAttention{"cudnn", AttentionKernel::cudnn}};

// H100 SXM5, 16,384 tokens in all, 16 heads of 128, TFLOP/s of 989.4 at 512, 1k, 2k, 4k, 8k and 16k
// tokens (arXiv 2407.08608, figures 5 and 6, as read by subtext.edge.nugit.net on 2026-11-29):
//   forward, causal   FA2 191 260 298 319 333 335   cuDNN 315 410 484 518 529 539
//                     FA3 292 423 521 579 602 616
//   backward          FA2 214 260 291 310 318 322   cuDNN 305 408 465 499 518 516
//                     FA3 316 424 501 542 559 561
// The curves leave 3 % at most. The backward's mask is not said, and taken to be causal; heads of
// 64 by its figure for them (FA2 198 238 264, cuDNN 266 348 395, FA3 272 363 422 at 512 to 2k), the
// forward's as well. Heads that do not occupy the chip, and latent attention, nobody measured: 1.
constexpr std::string_view of_fa3 = "FlashAttention-3 on H100 (arXiv 2407.08608)";
constexpr AttentionCurves fa2_on_hopper{{0.354, 403, 0, 0.92, 1}, {0.333, 274, 0, 0.92, 1}, of_fa3};
constexpr AttentionCurves fa3_on_hopper{{0.662, 603, 0, 0.85, 1}, {0.598, 427, 0, 0.85, 1}, of_fa3};
constexpr AttentionCurves cudnn_on_hopper{
    {0.567, 387, 0, 0.86, 1}, {0.548, 376, 0, 0.86, 1}, of_fa3};

// B200 (2,250 TFLOP/s), one sequence, heads of 128: MooreThreads/SimuMax,
// configs/system/b200_bf16_ceperm.json, sdp_fwd and sdp_bwd, read 2026-11-29. It counts the pairs
// above the diagonal as well: these are halves. The backward's FLOPs are taken for 2.5 times the
// forward's.
//   tokens     4,096                                     32,768        131,072
//   heads      4     8     16    32    64    128         8     16      8     16
//   forward    .083  .155  .289  .366  .436  .498        .601  .583    .501  .494
//   backward   .173  .329  .378  .398  .365  .416        .477  .436    .413  .413
// The curves leave 18 % at most forward, 10 % backward. Latent attention (192 and 128): 1 forward,
// 0.78 backward of the same heads. Heads of 64, forward: cuDNN at 1k to 16k tokens, 627 826 977
// 1,071 1,115 TFLOP/s (Dao-AILab/flash-attention, pull request 2605), 0.96 to 1.07 of the curve;
// the backward's nobody measured: 1.
constexpr AttentionCurves cudnn_on_blackwell{{0.551, 1150, 90'500, 1, 1},
                                             {0.437, 516, 38'000, 1, 0.78},
                                             "SimuMax's fused attention on B200"};

double by_width(const AttentionCurve& curve, const AttentionSize& size) {
  if (size.key_width > size.value_width) return curve.latent;
  if (size.key_width >= usual_width) return 1;
  return std::pow(curve.narrow, std::log2(usual_width / size.key_width));
}

}  // namespace

std::span<const NamedAttention> attention_kernels() { return named_kernels; }

std::string_view name(AttentionKernel kernel) {
  return std::find_if(named_kernels.begin(), named_kernels.end(),
                      [&](const NamedAttention& one) { return one.kernel == kernel; })
      ->name;
}

bool has_curve(AttentionKernel kernel) {
  return kernel != AttentionKernel::flash && kernel != AttentionKernel::plain;
}

const AttentionCurves* find_attention_curves(AttentionKernel kernel, std::string_view kind) {
  const Architecture architecture = architecture_of(kind);
  const bool is_hopper = architecture == Architecture::hopper;
  switch (kernel) {
    case AttentionKernel::flash:
    case AttentionKernel::plain:
      return nullptr;
    case AttentionKernel::fa2:
      return is_hopper ? &fa2_on_hopper : nullptr;
    case AttentionKernel::fa3:
      return is_hopper ? &fa3_on_hopper : nullptr;
    case AttentionKernel::cudnn:
      if (is_hopper) return &cudnn_on_hopper;
      return architecture == Architecture::blackwell ? &cudnn_on_blackwell : nullptr;
  }
  return nullptr;  // unreachable; g++ wants it
}

std::string attention_note(AttentionKernel kernel, std::string_view kind) {
  const bool is_hopper = architecture_of(kind) == Architecture::hopper;
  const std::string_view family = family_of_kind(kind);
  // An H200 has the arithmetic of an H100.
  const bool measured = is_hopper ? family == "h100" || family == "h200" : family == "b200";
  if (measured || !has_curve(kernel)) return "";
  return fmt::format(
      "attention by {} on {}: nobody measured it, its shares of the peak are those of {}",
      name(kernel), kind, is_hopper ? "an H100" : "a B200");
}

double share_of(const AttentionCurve& curve, const AttentionSize& size) {
  const double occupied = curve.full > 0 ? std::min(1.0, size.queries / curve.full) : 1;
  return curve.most * size.seq / (size.seq + curve.half) * occupied * by_width(curve, size);
}

}  // namespace stageline
