// The bricks of a layer's passes. For the files of this folder only.
//
//   of the forward                 of I                                of W
//   product (m, n, k)              product (m, k, n)                   product of as many FLOPs
//   attention, plain               twice the FLOPs                     -
//   attention, fused               2.5 times the FLOPs: it makes       -
//                                  the scores again (arXiv 2307.08691)
//   elementwise                    elementwise                         -
//
// The three products of a linear layer take equally long: each has the extents of the forward's in
// the efficiency curve, as it was fitted.
#pragma once

#include <string_view>

#include "cost_models/transformers/rank_sizes.hpp"

namespace stageline {

/// How often elementwise kernels read or write a tensor; masks of dropout, a byte an element, count
/// as the part of it that they are: half of one of 2 bytes an element.
struct TensorPasses {
  double forward = 0;
  double input_grad = 0;
};

/// How often the elementwise kernels of a block read or write a tensor. As Megatron-LM does it
/// (fits to steps of 2021 to 2023; dropout included, whether or not the form has it):
///   two norms and two adds    11 forward, 11 backward, of the hidden state
///   softmax and dropout       4.5 and 5.5, of the scores
///   bias and GELU             4 and 5, of the MLP's width
///   a gated activation        5 and 8, with its product: kernels of their own
///   a rotary embedding        10 and 10: two products, a copy with halves exchanged, a sum
/// As compiled, each tensor is read and written once, and the sum of the gradients where the
/// residual branches off is part of the norm's backward.
struct BlockTraffic {
  TensorPasses norm;
  TensorPasses add;         // behind attention and MLP, with the dropout
  TensorPasses softmax;     // of the scores
  TensorPasses activation;  // of the MLP's width
  TensorPasses gated;
  TensorPasses rotary;  // of the elements that it turns
};
BlockTraffic block_traffic(const LanguageForm& form);

/// Appends the forward's kernel, and those of I and W, to the passes. `bytes`: of the tensor.
void add_linear(LayerKernels& passes, std::string_view name, double rows, double columns,
                double inner);
/// The same of a product that stays in 16 bits where others are quantized.
void add_wide_linear(LayerKernels& passes, std::string_view name, double rows, double columns,
                     double inner);
void add_elementwise(LayerKernels& passes, std::string_view name, double bytes,
                     const TensorPasses& tensors);
/// As add_linear(), of `count` matrices side by side, each on `rows` rows.
void add_grouped(LayerKernels& passes, std::string_view name, const RankSizes& sizes, double rows,
                 double columns, double inner, double count);

/// A kernel by itself.
Kernel product(std::string_view name, double rows, double columns, double inner);
Kernel elementwise(std::string_view name, double bytes);

inline constexpr double flash_backward = 2.5;  // FlashAttention-2, arXiv 2307.08691, section 4.1

/// What the tokens of one sequence attend to, of the slice that is priced and the context-parallel
/// rank with most.
struct AttendedKeys {
  double pairs = 0;  // of a token and a key
  double reach = 0;  // the longest run of keys that one of its tokens attends to
};
/// `window`: 0: none; `chunked`, `causal`: as TransformerConfig's.
AttendedKeys attended_keys(const RankSizes& sizes, const LanguageForm& form, double window,
                           bool chunked, bool causal);
/// A fused kernel of scores, forward and in I.
void add_fused_scores(LayerKernels& passes, std::string_view name, double forward, double backward,
                      AttentionSize size);

/// From the normed hidden state to the output of the projection.
void add_attention(LayerKernels& passes, const TransformerConfig& config, const LanguageForm& form,
                   std::int64_t block);

/// The same of a linear layer.
void add_linear_mixer(LayerKernels& passes, const LinearMixer& linear, const RankSizes& sizes,
                      const BlockTraffic& traffic);

struct MlpNames {
  std::string_view up;
  std::string_view activation;
  std::string_view down;
};
/// `count` MLPs of that width side by side, each on `rows` rows.
void add_mlp(LayerKernels& passes, const MlpNames& names, const RankSizes& sizes, bool gated,
             double width, double rows, const BlockTraffic& traffic, double count = 1);

/// Router, exchange of the order of rows, routed and shared experts.
void add_experts(LayerKernels& passes, const TransformerConfig& config, const LanguageForm& form);

}  // namespace stageline
