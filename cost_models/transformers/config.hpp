// A language model as a value: the sizes from which its parameters, FLOPs and bytes follow.
//
//   embedding ─► [ norm ─► attention ─► add ─► norm ─► MLP or experts ─► add ] × layers ─► norm ─►
//   head
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

/// With a bias; without; a layer norm without one (Command R); one without parameters (OLMo).
enum class NormKind : std::uint8_t { layer, rms, layer_weight, bare };
enum class Positions : std::uint8_t { learned, rotary, alibi, none };
/// Norms of queries and keys: over the width of a head, with weights that all heads share (Qwen 3);
/// over all heads, or with weights for each (OLMo 2, Command R+); without weights (Llama 4); over
/// the width of a head, with weights for each and no biases (StableLM 2).
enum class QueryKeyNorm : std::uint8_t { none, head, all, bare, each };

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries and keys have a part
/// without positions and a rotary part, which all heads' keys share; queries, and keys with values,
/// come from vectors of a low rank, each normed.
struct LatentAttention {
  std::int64_t query_rank = 0;  // 0: queries come straight from the hidden state
  std::int64_t key_value_rank = 0;
  std::int64_t plain_width = 0;   // of a head's query and key: without positions,
  std::int64_t rotary_width = 0;  // and with them
  std::int64_t value_width = 0;   // of a head
  // Sparse attention (DeepSeek-V3.2): heads of an indexer, which scores all keys, their width, and
  // the keys that a token then attends to. 0: none, all keys.
  std::int64_t index_heads = 0;
  std::int64_t index_width = 0;
  std::int64_t index_keys = 0;
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// Attention within a window and to compressed keys (DeepSeek-V4): one vector of a head's width is
/// key and value of all heads. Queries come from a vector of low rank; the output goes through one
/// for each group of heads. A compressed key is a weighed sum of `rate` tokens (a block that is
/// sparse: of twice as many, so that neighbours overlap), by two products of the hidden state.
struct CompressedAttention {
  std::int64_t query_rank = 0;
  std::int64_t rotary_width = 0;  // of a head
  std::int64_t output_groups = 0;
  std::int64_t output_rank = 0;  // of a group
  std::int64_t sparse_rate = 0;  // tokens of a key: of blocks whose indexer chooses among them,
  std::int64_t heavy_rate = 0;   // and of those that attend to all
  std::int64_t index_heads = 0;
  std::int64_t index_width = 0;  // whose keys are compressed as well, at the sparse rate
  std::int64_t index_keys = 0;   // compressed keys that a token attends to
  friend bool operator==(const CompressedAttention&, const CompressedAttention&) = default;
};

/// The MLP of a block as routed experts, each as the MLP is (gated or not).
struct Experts {
  std::int64_t count = 0;
  std::int64_t chosen = 1;  // by each token; with some that do nothing, of the others in the mean
  std::int64_t zero = 0;    // that the router knows beside `count` and that do nothing (LongCat)
  std::int64_t ffn = 0;     // width of one
  std::int64_t shared_ffn = 0;    // width of the experts that all tokens pass, together; 0: none
  std::int64_t dense_blocks = 0;  // first blocks with a dense MLP instead
  std::int64_t every = 1;         // of the blocks behind those, every so manyth has experts
  bool shared_gate = false;  // the shared experts' output is weighed by a learned gate (Qwen 2 MoE)
  bool correction_bias = false;    // of the router: a number an expert (DeepSeek-V3), which counts
  std::int64_t hashed_blocks = 0;  // first blocks whose experts follow from the token: without one
  std::int64_t norms = 0;          // of the hidden state, beside those of a block without experts
  std::int64_t groups = 1;         // equal ones, of which a token's experts are in
  std::int64_t chosen_groups = 1;  // so many (DeepSeek's node-limited routing)
  std::int64_t known() const { return count + zero; }  // to the router
  friend bool operator==(const Experts&, const Experts&) = default;
};

/// Heads for queries, keys and values of blocks that have others than the rest (Gemma 4, MiMo-V2:
/// those without a window).
struct WideHeads {
  std::int64_t kv_heads = 0;
  std::int64_t width = 0;        // of a query and a key
  bool values_are_keys = false;  // one product makes both, before either is normed
  std::int64_t value_width = 0;  // 0: `width`; heads_of() fills it in
  friend bool operator==(const WideHeads&, const WideHeads&) = default;
};

/// A layer in place of attention whose state has a constant size: a matrix of key_width by
/// value_width for each of its heads.
enum class LinearKind : std::uint8_t {
  delta_net,    // gated delta rule, with a convolution and a gate (Qwen3-Next, arXiv 2412.06464)
  mamba,        // Mamba 2 (arXiv 2405.21060)
  lightning,    // with an output gate (MiniMax-01, arXiv 2501.08313)
  selective,    // Mamba 1 (arXiv 2312.00752): each channel is a head, whose step follows from it
  convolution,  // a short convolution between two gates, and no state (LFM2)
  kimi_delta    // delta rule with a decay a channel (Kimi Linear, arXiv 2510.26692)
};
struct LinearMixer {
  LinearKind kind = LinearKind::delta_net;
  std::int64_t heads = 0;        // for values
  std::int64_t key_heads = 0;    // for queries and keys; of Mamba groups
  std::int64_t key_width = 0;    // of Mamba the state
  std::int64_t value_width = 0;  // of a head
  std::int64_t taps = 0;         // of the convolution
  bool convolution_bias = false;
  bool bias = false;           // of its products
  bool norm = true;            // of the output (Falcon-H1: none)
  std::int64_t step_rank = 0;  // of the product that makes the time steps (Mamba 1)
  bool inner_norms = false;    // of steps, B and C (Jamba)
  std::int64_t gate_rank = 0;  // of what makes the decays and the output's gate (Kimi Linear)

  std::int64_t keys() const { return key_heads * key_width; }
  std::int64_t values() const { return heads * value_width; }
  bool is_delta() const { return kind == LinearKind::delta_net || kind == LinearKind::kimi_delta; }
  std::int64_t convolved() const;  // channels of the convolution
  std::int64_t columns() const;    // of the first product: all that follows from the hidden state
  friend bool operator==(const LinearMixer&, const LinearMixer&) = default;
};

/// `both`: attention and a linear layer side by side (Falcon-H1).
enum class Mixer : std::uint8_t { attention, linear, both, none };
enum class Feed : std::uint8_t { dense, experts, none };
/// How a block compresses keys: see CompressedAttention.
enum class Compression : std::uint8_t { none, sparse, heavy };
/// The two halves of a block, of which one may be missing (Nemotron-H).
struct BlockKind {
  Mixer mixer = Mixer::attention;
  Feed feed = Feed::dense;
  bool window = false;
  bool rotary = true;   // whether rotary positions turn its queries and keys
  bool indexer = true;  // false: it attends to the keys that the block before took (GLM-5)
  bool wide = false;    // its heads are TransformerConfig::wide
  Compression compression = Compression::none;
  bool shortcut = false;  // its experts' output is added behind the next block (LongCat-Flash)

  bool attends() const { return mixer == Mixer::attention || mixer == Mixer::both; }
  bool scans() const { return mixer == Mixer::linear || mixer == Mixer::both; }
  int halves() const { return (mixer == Mixer::none ? 0 : 1) + (feed == Feed::none ? 0 : 1); }
  friend bool operator==(const BlockKind&, const BlockKind&) = default;
};

struct TransformerConfig {
  std::string name;    // "llama3-70b", or the config.json
  std::string family;  // "llama"
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;     // of grouped-query attention; `heads`: as many
  std::int64_t head_width = 0;   // usually hidden / heads
  std::int64_t value_width = 0;  // of a head's value; 0: `head_width` (MiMo-V2: less)
  std::int64_t ffn = 0;          // width of a dense MLP
  bool gated = false;            // three matrices (SwiGLU, GeGLU) instead of two
  bool clamped = false;          // both halves of the gated activation are clamped (GPT-OSS)
  std::int64_t vocab = 0;        // as published, not padded
  bool tied = false;             // the head's weights are the embedding's
  NormKind norm = NormKind::rms;
  bool norms_before = true;     // a norm before attention and MLP
  bool norms_behind = false;    // one (more) behind attention and MLP (Gemma 2; OLMo 2: alone)
  bool first_norm = true;       // the first block has one before attention (ModernBERT: none)
  bool last_norm = true;        // one before the head (BERT: none)
  bool embedding_norm = false;  // and one behind the embedding (BLOOM)
  bool inner_norms = false;     // before the last product of attention and of an MLP (BitNet)
  std::int64_t activation_parameters = 0;  // of a dense MLP: what its activation learns (xIELU)
  bool head_dense = false;  // the head has a product h × h, an activation and a norm (BERT)
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  bool value_norm = false;         // values are normed, too, without weights (Gemma 4)
  bool attention_gate = false;     // attention's output is weighed by a product (Qwen3-Next)
  bool sinks = false;              // a learned number a head in the softmax's sum (GPT-OSS)
  bool window_sinks = false;       // of blocks with a window alone (MiMo-V2)
  bool parallel_residual = false;  // x + attention(norm(x)) + MLP(norm'(x)) (GPT-NeoX)
  bool one_norm = false;           // of which both read the same (GPT-J)
  bool query_key_value_bias = false;
  bool projection_bias = false;  // of attention's output
  bool mlp_bias = false;
  bool head_bias = false;  // of the logits (GPT-J)
  Positions positions = Positions::rotary;
  std::int64_t places = 0;       // rows of a learned table of positions
  std::int64_t token_types = 0;  // and of one of segments (BERT)
  bool causal = true;            // false: tokens attend to those behind them, too (encoders)
  std::int64_t window = 0;       // tokens that a token attends to, of sliding-window blocks; 0: all
  std::int64_t window_every =
      1;                 // one block of so many has the window, the first of them (Gemma 2: 2)
  bool chunked = false;  // the window is a piece of the sequence, in which tokens attend (Llama 4)
  std::optional<LatentAttention> latent{};
  std::optional<CompressedAttention> compressed{};  // in all blocks, each with the window
  std::int64_t streams = 0;                         // see residual_streams.hpp; 0: one residual
  std::optional<WideHeads> wide{};                  // of blocks that say so
  std::optional<LinearMixer> linear{};
  std::optional<Experts> experts{};
  /// Kinds of the blocks, again from the start where there are more; the block behind the last is
  /// as the last. Empty: attention in all, windows and experts as stated above.
  std::vector<BlockKind> pattern{};
  std::int64_t prediction_modules = 0;  // each predicts one more token (DeepSeek-V3); not priced
  std::optional<BlockKind> prediction_kind{};  // of their blocks; as the last one's where not said
  std::int64_t seq = 2048;                     // usual length of a sequence in pretraining
  std::string headless;  // class that the config.json is of, without the head that is priced; or ""
  std::string source;
  std::vector<std::string> notes{};  // what the file has that is left out

  BlockKind kind(std::int64_t block) const;
  bool has_experts(std::int64_t block) const;
  bool has_window(std::int64_t block) const;
  /// Those of a block of that kind, of attention that is not latent, with the width of values.
  WideHeads heads_of(const BlockKind& kind) const;
  std::int64_t least_kv_heads() const;  // of any block
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// States the blocks one by one: by `window_every`, `dense_blocks` and `every` where these can say
/// it, else as the shortest pattern.
void set_blocks(TransformerConfig& config, const std::vector<BlockKind>& kinds);

/// Parameters of a norm over that width.
std::int64_t norm_parameters(const TransformerConfig& config, std::int64_t width);
/// Norms of the hidden state in one block.
std::int64_t block_norms(const TransformerConfig& config, std::int64_t block);

/// Whether the router of that block adds a number an expert before it chooses.
bool has_correction(const Experts& experts, std::int64_t block);

/// Those of the last norm, and of the product and norm before the logits where the head has them.
std::int64_t head_extras(const TransformerConfig& config);

/// All parameters, each once: tied weights count once. Equal to the published number.
std::int64_t parameters(const TransformerConfig& config);
/// Parameters of one block, without embedding, last norm and head.
std::int64_t block_parameters(const TransformerConfig& config, std::int64_t block);
/// Parameters of the routed experts of one block; 0 of a dense one.
std::int64_t expert_parameters(const TransformerConfig& config, std::int64_t block);
/// Those that work on one token: all but the experts that it does not choose.
std::int64_t active_parameters(const TransformerConfig& config);

/// Parameters of the modules that predict further tokens, which parameters() leaves out. Each has a
/// block, a product of the joined hidden state and embedding, the norms of both and the last norm;
/// embedding and head are the model's (DeepSeek-V3, arXiv 2412.19437, section 2.2). A residual of
/// several streams is collapsed before that norm (DeepSeek-V4).
std::int64_t prediction_parameters(const TransformerConfig& config);

/// Throws UsageError, which begins with the model's name, unless all sizes are positive and within
/// limits that keep every product in 64 bits, and fit together: heads a multiple of kv_heads,
/// chosen at most all experts, and the like.
void check(const TransformerConfig& config);

/// Multiply-accumulates of one token in the two products of a block's attention, scores and
/// context: with all `seq` tokens of its sequence, whatever the causal mask; in a block with a
/// window with at most as many as the window has.
/// In a linear layer those with its state, of its recurrence: one to write it and one to read it,
/// of the delta rule one more to read what is there.
double attention_products(const TransformerConfig& config, std::int64_t block, std::int64_t seq);

/// FLOPs of training on that many sequences of `seq` tokens as the literature counts them: 2 a
/// multiply-accumulate, forward and twice as many backward, attention as attention_products(),
/// nothing recomputed; experts as chosen. A GPT's are 72·B·s·L·h²·(1 + s/(6h) + V/(12·L·h))
/// (Narayanan et al. 2021, arXiv 2104.04473, without their recomputation).
double model_flops(const TransformerConfig& config, std::int64_t seq, std::int64_t sequences);
/// Those of the first `blocks` blocks alone, and of the head.
double model_flops(const TransformerConfig& config, std::int64_t blocks, std::int64_t seq,
                   std::int64_t sequences);

/// A model by name: "llama3-70b".
struct FamilyMember {
  TransformerConfig config;
  std::int64_t published = 0;  // parameters, exactly; 0: only rounded ones are published
  std::string_view
      summary;  // "Llama 3, 70.6 billion parameters, 80 blocks, 8 of 64 heads for keys and values"
};
/// In order of family and size.
std::span<const FamilyMember> families();
/// Null where none has that name.
const FamilyMember* find_family(std::string_view name);

/// "transformer" with options, each a size of TransformerConfig: layers, hidden, heads, kv_heads,
/// head_width, ffn, gated, vocab, tied, norm, qkv_bias, bias, positions, window, experts, topk,
/// expert_ffn, shared_ffn, dense_blocks, expert_groups, topk_groups. Layers, hidden and heads must
/// be given; kv_heads is heads, head_width hidden/heads, ffn 4·hidden (gated: 8/3·hidden, the next
/// multiple of 256), expert_ffn ffn, topk 1, vocab 51200, norm rms, positions rotary by default.
/// Those of a family or of a config.json change it.
std::vector<std::string> transformer_options();
/// Changes one. Returns false for a key that is none of transformer_options(). Throws UsageError
/// for a value out of range. A size that followed from the changed one by the defaults above does
/// so again in completed(), unless its key is in `given`: the keys that were changed before.
bool set_option(TransformerConfig& config, const std::string& key, const std::string& value,
                const std::vector<std::string>& given = {});
/// The open form before its options: all sizes 0.
TransformerConfig open_form();
/// Fills in what follows from what was given, and checks it. Throws UsageError as check(), where
/// layers, hidden or heads are missing, and for options of experts without their number.
TransformerConfig completed(TransformerConfig config);

}  // namespace stageline
