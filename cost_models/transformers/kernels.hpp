// What a rank launches for one layer of a language model and one micro-batch: kernels with sizes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/slices.hpp"
#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/model.hpp"

namespace stageline {

/// `plain` has its scores in memory, all others are fused: `flash` at a constant rate, others by
/// the size (attention_rates.hpp).
enum class AttentionKernel : std::uint8_t { flash, plain, fa2, fa3, cudnn };

/// What of a step is recorded as CUDA graphs, which the CPU starts at once: nothing; attention and
/// the router; all.
enum class CudaGraphs : std::uint8_t { none, partial, full };
inline constexpr std::array all_cuda_graphs{CudaGraphs::none, CudaGraphs::partial,
                                            CudaGraphs::full};
/// "partial".
std::string_view name(CudaGraphs graphs);

/// How context-parallel ranks attend to the keys and values of the others: `all_gather` has all of
/// them before attention (Llama 3, arXiv 2407.21783), `ring` gets them rank by rank beside
/// attention to those that are there (arXiv 2310.01889), `all_to_all` exchanges parts of the
/// sequence for heads (DeepSpeed-Ulysses, arXiv 2309.14509), `hierarchical` does so among
/// neighbours, and has a ring among the parts (USP, arXiv 2405.07719; TransformerEngine's a2a+p2p).
enum class ContextExchange : std::uint8_t { all_gather, ring, all_to_all, hierarchical };
inline constexpr std::array all_context_exchanges{
    ContextExchange::all_gather, ContextExchange::ring, ContextExchange::all_to_all,
    ContextExchange::hierarchical};
/// "p2p", as Megatron-LM's --cp-comm-type has it.
std::string_view name(ContextExchange exchange);

/// What tensor-parallel ranks with sequence parallelism gather for the products of attention and of
/// a dense MLP. 0 bytes: as other activations.
struct GatheredRows {
  double bytes = 0;            // an element, forward
  double gradient_bytes = 0;   // backward, of the gradient at the output
  bool cast_gathered = false;  // each rank casts all rows behind the gather; else its own before it
  friend bool operator==(const GatheredRows&, const GatheredRows&) = default;
};

/// How a language model is trained, beside its size.
struct LanguageForm {
  std::int64_t batch = 1;  // sequences in a micro-batch
  std::int64_t seq = 0;    // tokens of one; 0: the model's usual
  Sharding sharding{};     // the kernels are those of one rank
  AttentionKernel attention = AttentionKernel::flash;
  bool fused = false;  // norms, activations and adds each read and write their tensors once (as
                       // compiled); else as Megatron-LM of 2021 to 2023 does it
  bool dropout = false;
  bool alignment = false;   // products with extents that are no multiples of 64 are slower
  bool fused_loss = false;  // the loss overwrites its logits with their gradients; else in fp32
  double loss_gradient_bytes = 4;  // of a logit, made by the backward of a loss that is not fused
  double split_loss_gradient_bytes = 4;  // the same where tensor-parallel ranks share the logits
  int predictions = 0;  // modules behind the blocks, each of which predicts one more token
  CudaGraphs graphs = CudaGraphs::none;
  double tp_overlap = 0;  // share of the gathers and scatters of sequence parallelism around the
                          // products of attention and of a dense MLP that runs under these
  ContextExchange context_exchange = ContextExchange::all_gather;
  int context_part = 0;          // neighbours that exchange heads, of a hierarchical exchange
  bool context_balanced = true;  // each context-parallel rank has a piece of the sequence from
                                 // either end; else one piece, of which the last attends to most
  double imbalance = 1;          // tokens of the most loaded rank's experts over the mean
  double capacity = 0;     // rows that experts take at most over the mean, others are dropped; 0:
                           // all
  int expert_padding = 1;  // rows of each expert are padded to a multiple of it
  std::string dispatcher;  // of tokens to experts: a name of dispatchers(), or NCCL if empty
  bool narrow_dispatch = false;  // tokens go there in 8 bits, with their scales; back in 16
  double element_bytes = 2;      // of an activation and its gradient
  double product_bytes = 0;      // of one that a quantized product keeps for W; 0: as the others
  double operand_bytes = 0;      // of an operand of a product; 0: as element_bytes
  GatheredRows gathered{};
  std::int64_t wide_start = 0;  // blocks at the start whose products are in 16 bits all the same,
  std::int64_t wide_end = 0;    // and at the end (Megatron-LM's --first-last-layers-bf16)
  double main_gradient_bytes = 4;  // of a weight's gradient, into which the experts' are summed
  SequenceSlice slice{};           // a micro-batch is this one, which attends to those before it
  std::vector<std::int64_t> documents{};  // tokens of each one that a sequence packs, which attend
                                          // to their own alone; empty: the sequence is one
  friend bool operator==(const LanguageForm&, const LanguageForm&) = default;
};

enum class KernelKind : std::uint8_t {
  gemm,
  grouped,  // products side by side, each with a matrix of its own: of experts
  attention_plain,
  attention_flash,
  elementwise
};

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
  double count = 1;    // equal products side by side: experts
  double rows = 0;     // m, of a product of m × k by k × n: tokens
  double columns = 0;  // n
  double inner = 0;    // k
  double flops = 0;    // all that are computed; of products 2·count·m·n·k
  double bytes = 0;    // read and written, of elementwise kernels; of grouped ones those of the
                       // weights that they read, or of gradients that they add to
  double memory_share = 0;    // of the memory's bandwidth that it reaches; 0: KernelRates::memory
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
  int experts = 0;   // of the rank, whose products the CPU casts and issues one by one

  int launches_backward() const { return launches_input_grad + launches_weight_grad; }
};

/// Whether a product's last two extents fill its tiles; others cost KernelRates::misaligned.
bool fills_tiles(double columns, double inner);

/// Share of the memory's bandwidth at which grouped products move weights and gradients. Fitted to
/// 60 grouped products on B200 with fp32 gradients (MooreThreads/SimuMax v1.2,
/// configs/system/b200_bf16_ceperm.json, 2026: 128 to 9,832 rows an expert), beside the share of
/// the peak, which came out as that of plain products of the same file (0.503 and 0.505). It
/// leaves 10.7 % (weight gradients 7 %); the curve of plain products leaves 27 %, too fast. Assumed
/// of other chips.
inline constexpr double grouped_memory = 0.80;

/// Share of the memory's bandwidth that rows are permuted at: 0.50 forward and 0.51 backward on
/// B200 (the same file); assumed of other chips.
inline constexpr double permutation_memory = 0.5;

/// Bytes of a token's element in 8 bits, with an fp32 scale for 128 of them (DeepSeek-V3, arXiv
/// 2412.19437, section 3.3).
inline constexpr double narrow_bytes = 1 + 4.0 / 128;

/// Seconds of one kernel, without its launch:
///   gemm         flops/(peak·gemm) · (1 + gemm_rows/m + gemm_columns·(1/n + 1/k))
///   grouped      flops/(peak·gemm) · (1 + gemm_columns·(1/n + 1/k)) + bytes/(bandwidth·0.8)
///   attention    flops/(peak·attention_…)
///   elementwise  bytes/(bandwidth·memory)
double seconds(const Kernel& kernel, const KernelRates& rates, double peak_flops,
               double bytes_per_second, bool alignment);

/// Whose tokens attend to themselves and those before.
struct CausalSequence {
  double tokens = 0;
  double window = 0;     // tokens that one attends to at most; 0: all
  bool chunked = false;  // to those since the last multiple of the window
};
/// Pairs of a token and one that it attends to, of a context-parallel rank: balanced, it has the
/// pieces `rank` and 2·ranks − 1 − rank of 2·ranks equal ones of the sequence; else piece `rank` of
/// as many as ranks.
double causal_pairs(const CausalSequence& of, int ranks, int rank, bool balanced);

LayerKernels embedding_kernels(const TransformerConfig& config, const LanguageForm& form);
LayerKernels block_kernels(const TransformerConfig& config, const LanguageForm& form,
                           std::int64_t block);
/// A block, behind the product of hidden state and embedding, and its last norm.
LayerKernels prediction_kernels(const TransformerConfig& config, const LanguageForm& form);
/// The last norm, the logits and the loss; logits and loss once more for each prediction.
LayerKernels head_kernels(const TransformerConfig& config, const LanguageForm& form);

/// Bytes that a block's forward keeps for its backward: for the input gradient alone and for the
/// weights' (see Layer), at the form's bytes an element, but masks, logits and router
/// probabilities at their own (Korthikanti et al. 2022, arXiv 2205.05198: with plain attention,
/// dropout and 2 bytes an element s·b·h·(34 + 5·a·s/h) together).
struct KeptBytes {
  double input_grad = 0;
  double weight_grad = 0;
  double gradient = 0;           // output gradients from I to W beyond these
  double selective = 0;          // of the first two: what selective recomputation rebuilds
  double keys_values = 0;        // of the first two: what later slices of its sequence attend to
  double earlier_gradients = 0;  // as Layer::earlier_gradients
};
KeptBytes kept_by_block(const TransformerConfig& config, const LanguageForm& form,
                        std::int64_t block);
KeptBytes kept_by_embedding(const TransformerConfig& config, const LanguageForm& form);
KeptBytes kept_by_prediction(const TransformerConfig& config, const LanguageForm& form);
KeptBytes kept_by_head(const TransformerConfig& config, const LanguageForm& form);

/// Bytes of a block that has experts that its router and experts keep, shared ones too: all but
/// their input.
double kept_by_experts(const TransformerConfig& config, const LanguageForm& form);

/// The collectives of a layer, on tensors at the form's bytes an element; the loss exchanges fp32.
std::vector<LayerCollective> embedding_collectives(const TransformerConfig& config,
                                                   const LanguageForm& form);
std::vector<LayerCollective> block_collectives(const TransformerConfig& config,
                                               const LanguageForm& form, std::int64_t block);
std::vector<LayerCollective> prediction_collectives(const TransformerConfig& config,
                                                    const LanguageForm& form);
/// Around the product of hidden state and embedding of a prediction.
std::vector<LayerCollective> joined_collectives(const TransformerConfig& config,
                                                const LanguageForm& form);
std::vector<LayerCollective> head_collectives(const TransformerConfig& config,
                                              const LanguageForm& form);

/// Those of a block around an MLP on all rows; of its experts; and before attention's products.
std::vector<LayerCollective> mlp_collectives(const TransformerConfig& config,
                                             const LanguageForm& form);
std::vector<LayerCollective> experts_collectives(const TransformerConfig& config,
                                                 const LanguageForm& form);
std::vector<LayerCollective> gather_before_attention(const TransformerConfig& config,
                                                     const LanguageForm& form);

/// The part of a kernel of the forward that a module repeats.
struct ModuleKernel {
  std::string_view name;
  double share = 1;
};

/// A part of a block that recomputation may repeat alone, of which these are the kernels.
struct BlockModule {
  std::string_view name;                     // as in LayerModule
  std::vector<ModuleKernel> kernels;         // those that the block does not have do nothing
  double stash = 0;                          // bytes of what the block keeps that R makes again
  std::vector<LayerCollective> collectives;  // that R repeats
  bool attention = false;                    // whether attention is repeated
};
std::vector<BlockModule> block_modules(const TransformerConfig& config, const LanguageForm& form,
                                       std::int64_t block);

}  // namespace stageline
