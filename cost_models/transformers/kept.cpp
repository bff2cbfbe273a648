// Bytes that the layers of a language model keep from forward to backward, on one rank.
//
// A layer keeps its input; of its output nothing: the next layer does (as in shapes/shapes.hpp).
// With A = s·b·h elements of two bytes (other number formats: of as many), a GPT's block keeps
//
//                              bytes                       only norms and adds, /t with sp
//   norms                      4 of their inputs           4
//   qkv, scores, context       2 normed, 8 q k v, context  2     (k and v by their heads)
//   softmax                    2 a score, 2 with dropout its output and 1 its mask
//   MLP                        2 normed, 8 and 8           2     (f wide; gated: 3 tensors, not 2)
//   dropout                    2 masks                     2
//
// together A·(34 + 5·a·s/h) (Korthikanti et al. 2022, arXiv 2205.05198), 18 + 4·f/h for an MLP of
// width f. A fused attention keeps no scores but 4 bytes a token and head, the logarithm of the sum
// of exponentials. Means and variances of norms are not counted.
//
// Where products are quantized (product_recipes.hpp) W reads its inputs so, in fewer bytes. What
// another kernel reads as well is then kept twice: attention's output, which its backward reads,
// and what two products read that quantize it each (Transformer Engine's layers know nothing of
// each other). The norm before experts is kept in 16 bits, for the router.
//
// W reads the inputs of all products and the gradients at their outputs, those of row-parallel
// products whole: 32·s·b·h bytes of a GPT's block (Zero Bubble, arXiv 2401.10241). I writes these
// gradients where the tensors stood that it alone reads.
//
// A slice of a sequence keeps keys and values of its own once, where later slices read them too
// (assumed: code that joins them with those before into one tensor holds both).
#include <algorithm>
#include <cmath>

#include "cost_models/transformers/compressed_attention.hpp"
#include "cost_models/transformers/kimi_delta.hpp"
#include "cost_models/transformers/residual_streams.hpp"

namespace stageline {
namespace {

constexpr double mask_bytes = 1;      // of dropout, an element
constexpr double token_id_bytes = 8;  // int64

// In bytes: all that a forward keeps, and the inputs and output gradients that W reads.
struct HeldTensors {
  double element_bytes = 2;
  double product_bytes = 2;  // of an element that W reads
  double kept = 0;
  double weight_grad_inputs = 0;  // part of `kept`
  double output_gradients = 0;
  double selective = 0;  // part of `kept`

  void keep(double elements) { kept += element_bytes * elements; }
  void keep_for_product(double elements) {
    kept += product_bytes * elements;
    weight_grad_inputs += product_bytes * elements;
  }
  bool quantized() const { return product_bytes != element_bytes; }
  void product_writes(double elements) { output_gradients += element_bytes * elements; }
  void add(const StreamBytes& bytes) {
    kept += bytes.kept;
    weight_grad_inputs += bytes.weight_grad_inputs;
    output_gradients += bytes.output_gradients;
  }
};

KeptBytes split(const HeldTensors& held) {
  const double needed = held.weight_grad_inputs + held.output_gradients;
  KeptBytes bytes;
  bytes.weight_grad = std::min(held.kept, needed);
  bytes.input_grad = held.kept - bytes.weight_grad;
  bytes.gradient = needed - bytes.weight_grad;
  bytes.selective = held.selective;
  return bytes;
}

// A norm, whose output a product reads.
void hold_norm(HeldTensors& held, double elements) {
  held.keep(elements);
  held.keep_for_product(elements);
}

// Behind attention or MLP.
void hold_end(HeldTensors& held, const TransformerConfig& config, const LanguageForm& form,
              const RankSizes& sizes) {
  if (config.norms_behind) held.keep(sizes.norm_elements());
  if (form.dropout) held.kept += mask_bytes * sizes.norm_elements();
}

void hold_latent_products(HeldTensors& held, const LatentAttention& latent, const RankSizes& sizes,
                          bool indexer) {
  const double query_rank = real(latent.query_rank);
  const double key_value_rank = real(latent.key_value_rank);
  const double own = latent_tokens(sizes);
  if (query_rank > 0) {
    hold_norm(held, own * query_rank);
    held.product_writes(own * query_rank);
    if (held.quantized()) held.keep_for_product(sizes.norm_elements());  // the other low rank's
  }
  hold_norm(held, own * key_value_rank);
  held.product_writes(own * (key_value_rank + real(latent.rotary_width)));
  held.product_writes(sizes.tokens * sizes.queries());
  held.product_writes(sizes.tokens * sizes.heads * (real(latent.plain_width) + sizes.value_width));
  if (latent.index_heads == 0 || !indexer) return;
  const double index = real(latent.index_heads) * (real(latent.index_width) + 1);
  held.keep(sizes.tokens * (index + real(latent.index_width)));
  held.product_writes(sizes.tokens * (index + real(latent.index_width)));
}

// A norm before a product, or what it reads without one.
void hold_start(HeldTensors& held, const TransformerConfig& config, const RankSizes& sizes) {
  if (config.norms_before) {
    hold_norm(held, sizes.norm_elements());
  } else {
    held.keep_for_product(sizes.norm_elements());
  }
}

// What the first product makes, what is convolved, the scan's output, states between chunks, and
// what the last product reads.
void hold_linear(HeldTensors& held, const TransformerConfig& config, const RankSizes& sizes) {
  const RankLinear rank = rank_linear(*config.linear, sizes);
  held.product_writes(sizes.tokens * rank.columns);
  if (config.linear->kind == LinearKind::kimi_delta) {
    const KimiDeltaKept its = kept_by_kimi_delta(*config.linear, sizes);
    held.keep(its.kept);
    held.keep_for_product(its.for_products);
    held.product_writes(its.output_gradients + sizes.whole_elements());
    return;
  }
  held.keep(sizes.tokens * (rank.columns + rank.convolved + rank.values));
  held.kept += single_bytes * sizes.tokens * rank.states;
  if (config.linear->kind == LinearKind::selective) {
    const double steps = sizes.tokens * real(config.linear->step_rank);
    held.keep_for_product(steps);
    held.keep(sizes.tokens * (rank.values + 2 * real(config.linear->key_width)));
    held.product_writes(steps + sizes.tokens * (rank.values + 2 * real(config.linear->key_width)));
  }
  held.keep_for_product(sizes.tokens * rank.values);
  held.product_writes(sizes.whole_elements());
}

void hold_compressed(HeldTensors& held, const CompressedKept& attention, const RankSizes& sizes) {
  held.keep(attention.kept);
  held.keep_for_product(attention.for_products);
  held.product_writes(attention.output_gradients);
  held.kept += log_sum_exp_bytes * sizes.tokens * sizes.heads;
  if (held.quantized()) {  // attention's backward reads its output, too; another product the input
    held.keep(sizes.tokens * sizes.attended());
    held.keep_for_product(sizes.norm_elements());
  }
}

void hold_attention(HeldTensors& held, const TransformerConfig& config, const LanguageForm& form,
                    const RankSizes& sizes, const BlockKind& kind) {
  if (config.compressed) {
    hold_compressed(held, kept_by_compressed_attention(config, sizes, kind), sizes);
    return;
  }
  const double queries_and_keys = sizes.tokens * (sizes.queries() + sizes.read_keys());
  if (config.latent) {
    hold_latent_products(held, *config.latent, sizes, kind.indexer);
  } else {
    const double values =  // of their own product
        config.heads_of(kind).values_are_keys ? 0 : sizes.tokens * sizes.read_values();
    if (config.query_key_norm != QueryKeyNorm::none) held.keep(queries_and_keys);
    if (config.value_norm) held.keep(values);
    if (config.attention_gate) {
      held.keep(2 * sizes.tokens * sizes.attended());  // the gate, and what it weighs
      held.product_writes(sizes.tokens * sizes.attended());
    }
    held.product_writes(queries_and_keys + values);
  }
  held.keep(queries_and_keys + sizes.tokens * sizes.read_values());
  if (form.attention == AttentionKernel::plain) {
    const double dropped = form.dropout ? sizes.element_bytes + mask_bytes : 0;
    const double scores = (sizes.element_bytes + dropped) * sizes.scores();
    held.kept += scores;
    held.selective += scores;
  } else {
    held.kept += log_sum_exp_bytes * sizes.tokens * sizes.heads;
  }
  if (held.quantized() && form.attention != AttentionKernel::plain) {
    held.keep(sizes.tokens * sizes.attended());
  }
  if (config.inner_norms) held.keep(sizes.tokens * sizes.attended());
  held.keep_for_product(sizes.tokens * sizes.attended());
  held.product_writes(sizes.whole_elements());
}

// Tokens before `begin` that those from there on attend to.
double attended_before(double begin, double window, bool chunked) {
  if (window <= 0) return begin;
  return chunked ? std::fmod(begin, window) : std::min(begin, window);
}

// The keys and values of a slice stay for those behind it; its backward, which comes behind
// theirs, makes gradients of those before it as well, and adds them to what theirs have made. They
// wait in the number format of keys and values: thunlp/Seq1F1B (megatron/model/transformer.py,
// commit 6893466, 2024-12-24) adds them up in what flash-attention returns.
void hold_for_slices(KeptBytes& bytes, const TransformerConfig& config, const LanguageForm& form,
                     std::int64_t block) {
  if (form.slice.count == 1 || form.slice.number < 0) return;
  const RankSizes sizes = rank_sizes(config, form, block);
  double keys = sizes.read_keys() + sizes.read_values();
  if (config.latent && config.kind(block).indexer) keys += real(config.latent->index_width);
  const bool is_last = sizes.slice_end() >= sizes.seq;
  const bool sparse = config.latent && config.latent->index_heads > 0;
  const double window = config.has_window(block) && !sparse ? real(config.window) : 0;
  const auto before = [&](double begin) { return attended_before(begin, window, config.chunked); };
  const double left = before(sizes.slice_begin);
  const double found = is_last ? 0 : before(sizes.slice_end());
  const double each = sizes.bytes(sizes.batch * keys / sizes.context);  // of a token
  if (!is_last) bytes.keys_values = sizes.slice_tokens * each;
  bytes.earlier_gradients = (left - found) * each;
}

// An MLP on rows that another layer keeps.
void hold_mlp(HeldTensors& held, bool gated, double rows, double width, double hidden) {
  const double inner = (gated ? 2 : 1) * rows * width;
  held.keep(inner);
  held.product_writes(inner);
  held.keep_for_product(rows * width);
  held.product_writes(rows * hidden);
}

// Kept besides: the rows as the experts read them, the router's probabilities in fp32, where a
// clamp is a kernel of its own, what it makes, and where the weighing is one, the experts' outputs.
void hold_experts(HeldTensors& held, const TransformerConfig& config, const LanguageForm& form,
                  const RankSizes& sizes) {
  const RankExperts experts = rank_experts(config, form, sizes);
  const double probabilities = single_bytes * sizes.norm_tokens * experts.count;
  held.kept += probabilities;
  held.output_gradients += probabilities;
  held.keep_for_product(experts.routed_rows * sizes.hidden);
  hold_mlp(held, config.gated, experts.routed_rows, experts.ffn, sizes.hidden);
  if (clamps_apart(config, form)) held.keep(2 * experts.routed_rows * experts.ffn);
  if (!form.fused) held.keep(experts.permuted_tokens * experts.chosen * sizes.hidden);
  if (experts.shared_ffn == 0) return;
  if (held.quantized()) held.keep_for_product(sizes.norm_elements());
  hold_mlp(held, config.gated, sizes.tokens, experts.shared_ffn, sizes.hidden);
  if (config.experts->shared_gate) held.keep(sizes.norm_elements());
}

}  // namespace

double kept_by_experts(const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  HeldTensors held{.element_bytes = sizes.element_bytes};
  hold_experts(held, config, form, sizes);
  return held.kept;
}

KeptBytes kept_by_block(const TransformerConfig& config, const LanguageForm& form,
                        std::int64_t block) {
  const RankSizes sizes = rank_sizes(config, form, block);
  HeldTensors held{.element_bytes = sizes.element_bytes, .product_bytes = sizes.product_bytes};
  const BlockKind kind = config.kind(block);
  if (kind.mixer != Mixer::none) held.add(kept_by_streams(sizes));
  if (kind.mixer != Mixer::none) hold_start(held, config, sizes);
  if (kind.attends()) hold_attention(held, config, form, sizes, kind);
  if (kind.scans()) hold_linear(held, config, sizes);
  if (kind.mixer != Mixer::none) hold_end(held, config, form, sizes);
  const auto all = [&] {
    KeptBytes bytes = split(held);
    if (kind.attends()) hold_for_slices(bytes, config, form, block);
    return bytes;
  };
  if (kind.feed == Feed::none) return all();
  const bool experts = kind.feed == Feed::experts;
  held.add(kept_by_streams(sizes));
  if (experts && held.quantized()) {
    held.keep(config.parallel_residual ? sizes.norm_elements() : 2 * sizes.norm_elements());
    held.weight_grad_inputs += sizes.bytes(sizes.norm_elements());
  } else if (config.one_norm) {
    if (held.quantized()) held.keep_for_product(sizes.norm_elements());  // attention has a copy
  } else if (config.parallel_residual) {
    held.keep_for_product(sizes.norm_elements());  // of the norm; its input is attention's, too
  } else {
    hold_start(held, config, sizes);
  }
  if (experts) {
    held.keep(static_cast<double>(config.experts->norms) * sizes.norm_elements());
    hold_experts(held, config, form, sizes);
  } else {
    hold_mlp(held, config.gated, sizes.tokens, sizes.ffn, sizes.hidden);
    if (config.inner_norms) held.keep(sizes.tokens * sizes.ffn);
  }
  hold_end(held, config, form, sizes);
  return all();
}

// Without an input gradient all of its backward is W, for which the gradient at its output waits.
KeptBytes kept_by_embedding(const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  KeptBytes bytes;
  bytes.weight_grad = token_id_bytes * sizes.tokens;
  if (form.dropout) bytes.weight_grad += mask_bytes * sizes.norm_elements();
  bytes.gradient = sizes.bytes(sizes.residual_elements());
  return bytes;
}

// The loss keeps its logits in fp32, whatever the number format (Megatron-LM: 4·s·b·h·(1 + V/h)
// with the norm); a fused one their gradients in the number format.
KeptBytes kept_by_head(const TransformerConfig& config, const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  const double logits = sizes.tokens * sizes.padded_vocab;
  HeldTensors held{.element_bytes = sizes.element_bytes, .product_bytes = sizes.element_bytes};
  held.kept += kept_by_head_streams(sizes);
  hold_norm(held, sizes.norm_elements());
  if (config.head_dense) {
    hold_norm(held, sizes.norm_elements());
    held.keep(sizes.norm_elements());
    held.product_writes(sizes.norm_elements());
  }
  held.keep_for_product(form.predictions * sizes.norm_elements());
  const double each = form.fused_loss ? sizes.element_bytes : single_bytes;
  held.kept += (1 + form.predictions) * each * logits;
  held.product_writes((1 + form.predictions) * logits);
  return split(held);
}

}  // namespace stageline
