// What a rank launches for one layer of a language model and one micro-batch: kernels with sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/model.hpp"

namespace stageline {

/// `plain` has its scores in memory, all others are fused: `flash` at a constant rate, others by
/// the size (attention_rates.hpp).
enum class AttentionKernel : std::uint8_t { flash, plain, fa2, fa3, cudnn };

/// How a language model is trained, beside its size.
struct LanguageForm {
  std::int64_t batch = 1;  // sequences in a micro-batch
  std::int64_t seq = 0;    // tokens of one; 0: the model's usual
  Sharding sharding{};     // the kernels are those of one rank
  AttentionKernel attention = AttentionKernel::flash;
  bool fused = false;  // norms, activations and adds each read and write their tensors once (as
                       // compiled); else as Megatron-LM of 2021 to 2023 does it
  bool dropout = false;
  bool alignment = false;       // products with extents that are no multiples of 64 are slower
  double imbalance = 1;         // tokens of the most loaded rank's experts over the mean
  double element_bytes = 2;     // of an activation and its gradient
  double product_bytes = 0;     // of one that a quantized product keeps for W; 0: as the others
  std::int64_t wide_start = 0;  // blocks at the start whose products are in 16 bits all the same,
  std::int64_t wide_end = 0;    // and at the end (Megatron-LM's --first-last-layers-bf16)
  int slices = 1;  // equal ones that a sequence is cut into; all below is then of one of them, the
                   // mean: it attends to the slices before it as well
  friend bool operator==(const LanguageForm&, const LanguageForm&) = default;
};

enum class KernelKind : std::uint8_t { gemm, attention_plain, attention_flash, elementwise };

/// What the rate of fused attention depends on.
struct AttentionSize {
  double seq = 0;      // tokens that one attends to at most: of a sequence, or a window
  double queries = 0;  // of all heads and sequences
  double key_width = 0;
  double value_width = 0;
  bool backward = false;
};

struct Kernel {
  std::string_view name;  // "qkv"
  KernelKind kind = KernelKind::gemm;
  double count = 1;           // equal products side by side: experts
  double rows = 0;            // m, of a product of m × k by k × n: tokens
  double columns = 0;         // n
  double inner = 0;           // k
  double flops = 0;           // all that are computed; of products 2·count·m·n·k
  double bytes = 0;           // read and written, of elementwise kernels
  AttentionSize attention{};  // of fused attention
  bool selective = false;     // repeated by selective recomputation
  bool wide = false;  // a product in 16 bits where those of blocks are quantized: the router's
};

/// The passes of one layer.
struct LayerKernels {
  std::vector<Kernel> forward;
  std::vector<Kernel> input_grad;
  std::vector<Kernel> weight_grad;
  int launches_forward = 0;  // kernels that cost KernelRates::kernel each
  int launches_input_grad = 0;
  int launches_weight_grad = 0;
  double floor = 0;  // of the forward, in multiples of KernelRates::layer_floor; backward 1.2 times
                     // as much, of which I and W have parts by their launches

  int launches_backward() const { return launches_input_grad + launches_weight_grad; }
};

/// Whether a product's last two extents fill its tiles; others cost KernelRates::misaligned.
bool fills_tiles(double columns, double inner);

/// Seconds of one kernel, without its launch:
///   gemm         flops/(peak·gemm) · (1 + gemm_rows/m + gemm_columns·(1/n + 1/k))
///   attention    flops/(peak·attention_…)
///   elementwise  bytes/(bandwidth·memory)
double seconds(const Kernel& kernel, const KernelRates& rates, double peak_flops,
               double bytes_per_second, bool alignment);

LayerKernels embedding_kernels(const TransformerConfig& config, const LanguageForm& form);
LayerKernels block_kernels(const TransformerConfig& config, const LanguageForm& form,
                           std::int64_t block);
/// The last norm, the logits and the loss.
LayerKernels head_kernels(const TransformerConfig& config, const LanguageForm& form);

/// Bytes that a block's forward keeps for its backward: for the input gradient alone and for the
/// weights' (see Layer), at the form's bytes an element, but masks, logits and router
/// probabilities at their own (Korthikanti et al. 2022, arXiv 2205.05198: with plain attention,
/// dropout and 2 bytes an element s·b·h·(34 + 5·a·s/h) together).
struct KeptBytes {
  double input_grad = 0;
  double weight_grad = 0;
  double gradient = 0;   // output gradients from I to W beyond these
  double selective = 0;  // of the first two: what selective recomputation rebuilds
};
KeptBytes kept_by_block(const TransformerConfig& config, const LanguageForm& form,
                        std::int64_t block);
KeptBytes kept_by_embedding(const TransformerConfig& config, const LanguageForm& form);
KeptBytes kept_by_head(const TransformerConfig& config, const LanguageForm& form);

/// The collectives of a layer, on tensors at the form's bytes an element; the loss exchanges fp32.
std::vector<LayerCollective> embedding_collectives(const TransformerConfig& config,
                                                   const LanguageForm& form);
std::vector<LayerCollective> block_collectives(const TransformerConfig& config,
                                               const LanguageForm& form, std::int64_t block);
std::vector<LayerCollective> head_collectives(const TransformerConfig& config,
                                              const LanguageForm& form);

}  // namespace stageline
