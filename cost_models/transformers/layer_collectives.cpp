// Collectives of the layers of a language model, for one micro-batch.
//
//           forward                            backward
//   t       all-reduce                         all-reduce                      each half of a block
//   t, sp   all-gather … reduce-scatter        all-gather … reduce-scatter     each half of a block
//           all-reduce of the embedding        all-reduce before the head      (sp: as above)
//           3 of a number a row in the loss
//   t, with a parallel residual:
//           all-reduce of the sum              2 all-reduces                   a block
//   c       all-gather of K and V              all-gather of K and V, reduce-scatter of their
//                                              gradients
//   c, a2a  all-to-all of Q, K, V … of the     all-to-all of the output's gradient … of those of
//           output                             Q, K, V
//   e       all-to-all … all-to-all            all-to-all … all-to-all         rows of the experts
//   etp     all-gather … reduce-scatter        all-gather … reduce-scatter     rows of the experts
//
// Where attention and the MLP read the same hidden state, the ranks sum both outputs at once; their
// inputs have norms of their own, and so two gradients (GPT-NeoX, megatron/model/transformer.py and
// megatron/mpu/layers.py). With sequence parallelism there is one reduce-scatter less forward, and
// one all-gather less backward.
//
// With sequence parallelism W's input is gathered once more, beside the product that makes the
// input gradient, and so is not among the blocking ones. Latent attention gathers its vectors of
// low rank instead of the hidden state. With both e and sequence parallelism, a rank sends the rows
// of its part of the sequence, and the ranks that share its experts gather what they received: a
// row for each chosen expert (Megatron-LM's all-to-all dispatcher). They are the tensor-parallel
// ranks, or where experts have another tensor degree, etp of their own, one of which gathers
// nothing. The most loaded rank receives the rows of the form's imbalance, and all wait for it.
//
// Bytes of an all-to-all are those of a row for each chosen expert, also by a dispatcher, which
// sends fewer copies (cost_models/network/dispatch.hpp). In 8 bits tokens go to the experts, and
// the gradients of what comes back; what comes back, and the tokens' gradients, are in 16.
//
// The form's tp_overlap is the share of sequence parallelism's gathers and scatters that runs under
// the product beside it, as TransformerEngine's user buffers (Megatron-LM's --tp-comm-overlap) and
// torch's async tensor parallelism do for the linear layers of attention and of a dense MLP, and
// not for experts, nor for embedding and head.
//
// In a ring of context-parallel ranks (Liu et al. 2023, arXiv 2310.01889; TransformerEngine's p2p)
// keys and values, and backward their gradients, move beside attention to the ones before. In an
// all-to-all (DeepSpeed-Ulysses, arXiv 2309.14509; TransformerEngine's a2a) each rank sends its
// part of the sequence and gets all of it of its heads; each of Q, K and V by itself, as
// TransformerEngine does (attention/dot_product_attention/context_parallel.py). Of keys and values
// with fewer heads than ranks each rank is sent a copy. A hierarchy (a2a+p2p) does so among
// neighbours, each of whom has a ring with those at the same place of the other parts: its blocks
// are as many bytes as those of the whole ring, and fewer.
//
// Tensors travel in the number format of the activations (fp8: 2 bytes), but for rows that are
// gathered for quantized products of attention, an MLP or shared experts, which travel as their
// recipe has them (product_recipes.cpp); the loss's numbers in fp32.
#include <algorithm>
#include <cmath>

#include "cost_models/transformers/rank_sizes.hpp"

namespace stageline {
namespace {

struct PassCounts {
  int forward = 0;
  int input_grad = 0;
  int weight_grad = 0;
};

// `hidden`: the share that runs under products.
void add_collective(std::vector<LayerCollective>& list, CollectiveKind kind, Dimension group,
                    double bytes, PassCounts counts, double hidden = 0,
                    const TokenRouting& routing = {}, const GroupUse& use = {}) {
  const Bytes rounded{std::llround(bytes)};
  for (LayerCollective& had : list) {
    if (had.kind != kind || had.group != group || had.bytes != rounded) continue;
    if (had.hidden != hidden || had.routing != routing || had.use != use) continue;
    had.forward += counts.forward;
    had.input_grad += counts.input_grad;
    had.weight_grad += counts.weight_grad;
    return;
  }
  list.push_back({kind, group, rounded, counts.forward, counts.input_grad, counts.weight_grad,
                  routing, hidden, Time{}, Time{}, use});
}

// Bytes around products on gathered rows: gathered before and scattered behind them, and backward
// scattered and gathered. The second and fourth are 0 where the output is summed with that of
// another half.
struct GatheredBytes {
  double before = 0;
  double behind = 0;
  double gradient_before = 0;
  double gradient_behind = 0;
};

void add_gathered(std::vector<LayerCollective>& list, Dimension group, const GatheredBytes& bytes,
                  double hidden = 0) {
  add_collective(list, CollectiveKind::all_gather, group, bytes.before, {1, 0, 0}, hidden);
  if (bytes.behind > 0) {
    add_collective(list, CollectiveKind::reduce_scatter, group, bytes.behind, {1, 0, 0}, hidden);
    add_collective(list, CollectiveKind::all_gather, group, bytes.gradient_behind, {0, 1, 0},
                   hidden);
  }
  add_collective(list, CollectiveKind::reduce_scatter, group, bytes.gradient_before, {0, 1, 0},
                 hidden);
}

// Around products, of which the first is divided by columns, the last by rows. Elements: of the
// tensor before the first and of the one behind the last; of that 0 where it is summed with the
// output of another half.
void add_around(std::vector<LayerCollective>& list, const RankSizes& sizes, double before,
                double behind, double hidden = 0) {
  const double first = sizes.bytes(before);
  const double last = sizes.bytes(behind);
  if (sizes.tensor <= 1) return;
  if (sizes.sequence) {
    const GatheredRows& rows = sizes.gathered;
    add_gathered(list, Dimension::tensor,
                 {rows.bytes * before, last, first, rows.gradient_bytes * behind}, hidden);
  } else {
    if (last > 0)
      add_collective(list, CollectiveKind::all_reduce, Dimension::tensor, last, {1, 0, 0});
    add_collective(list, CollectiveKind::all_reduce, Dimension::tensor, first, {0, 1, 0});
  }
}

// A ring moves as many bytes as the all-gather among its ranks, and can hide all of them.
void add_context(std::vector<LayerCollective>& list, const RankSizes& sizes,
                 const LanguageForm& form) {
  if (sizes.context <= 1) return;
  const bool parts = form.context_exchange == ContextExchange::hierarchical;
  const int part = parts ? form.context_part : 0;
  if (sizes.context_heads > 1) {
    for (const double width :
         {sizes.queries(), sizes.read_keys(), sizes.read_values(), sizes.attended()}) {
      add_collective(list, CollectiveKind::all_to_all, Dimension::context,
                     sizes.bytes(sizes.tokens * width), {1, 1, 0}, 0, {}, {part, false, 0});
    }
  }
  if (sizes.context_ring <= 1) return;
  const bool gathers = form.context_exchange == ContextExchange::all_gather;
  const double tokens = sizes.tokens * sizes.context_ring;  // earlier slices' are there
  const double bytes = sizes.bytes(tokens * (sizes.read_keys() + sizes.read_values()));
  const double hidden = gathers ? 0 : 1;
  const GroupUse use{part, parts, gathers ? 0 : static_cast<int>(sizes.context_ring)};
  add_collective(list, CollectiveKind::all_gather, Dimension::context, bytes, {1, 1, 0}, hidden, {},
                 use);
  add_collective(list, CollectiveKind::reduce_scatter, Dimension::context, bytes, {0, 1, 0}, hidden,
                 {}, use);
}

void add_experts_exchange(std::vector<LayerCollective>& list, const TransformerConfig& config,
                          const LanguageForm& form, const RankSizes& sizes) {
  const RankExperts experts = rank_experts(config, form, sizes);
  if (sizes.expert > 1) {
    const double elements =
        experts.permuted_tokens * experts.chosen * experts.imbalance * sizes.hidden;
    TokenRouting routing = routing_of(config, form);
    add_collective(list, CollectiveKind::all_to_all, Dimension::expert,
                   form.narrow_dispatch ? narrow_bytes * elements : sizes.bytes(elements),
                   {1, 1, 0}, 0, routing);
    routing.combine = !routing.dispatcher.empty();
    add_collective(list, CollectiveKind::all_to_all, Dimension::expert, sizes.bytes(elements),
                   {1, 1, 0}, 0, routing);
  }
  if (form.sharding.folded()) {
    const double bytes = sizes.bytes(experts.routed_rows * sizes.hidden);
    if (sizes.expert_tensor > 1) {
      add_gathered(list, Dimension::expert_tensor, {bytes, bytes, bytes, bytes});
    }
  } else {
    const bool gathers_rows = sizes.expert > 1 && sizes.sequence;
    const double rows = gathers_rows ? experts.routed_rows : sizes.tokens;
    RankSizes unquantized = sizes;  // rows are gathered before they are sorted by expert
    unquantized.gathered = {sizes.element_bytes, sizes.element_bytes, false};
    add_around(list, unquantized, rows * sizes.hidden, rows * sizes.hidden);
  }
  if (experts.shared_ffn > 0) {
    add_around(list, sizes, sizes.whole_elements(), sizes.whole_elements());
  }
}

}  // namespace

std::vector<LayerCollective> mlp_collectives(const TransformerConfig& config,
                                             const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  std::vector<LayerCollective> list;
  add_around(list, sizes, sizes.whole_elements(), sizes.whole_elements());
  return list;
}

std::vector<LayerCollective> experts_collectives(const TransformerConfig& config,
                                                 const LanguageForm& form) {
  std::vector<LayerCollective> list;
  add_experts_exchange(list, config, form, rank_sizes(config, form));
  return list;
}

std::vector<LayerCollective> gather_before_attention(const TransformerConfig& config,
                                                     const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  std::vector<LayerCollective> list;
  if (sizes.sequence) add_around(list, sizes, sizes.tokens * gathered_width(config, {}), 0);
  return list;
}

std::vector<LayerCollective> block_collectives(const TransformerConfig& config,
                                               const LanguageForm& form, std::int64_t block) {
  const RankSizes sizes = rank_sizes(config, form, block);
  std::vector<LayerCollective> list;
  const BlockKind kind = config.kind(block);
  const bool joint = config.parallel_residual && kind.feed == Feed::dense;
  const double before = kind.attends() ? gathered_width(config, kind) : real(config.hidden);
  if (kind.mixer != Mixer::none) {
    add_around(list, sizes, sizes.tokens * before, joint ? 0 : sizes.whole_elements(),
               form.tp_overlap);
  }
  if (kind.attends()) add_context(list, sizes, form);
  if (kind.feed == Feed::experts) {
    add_experts_exchange(list, config, form, sizes);
  } else if (kind.feed == Feed::dense) {
    add_around(list, sizes, sizes.whole_elements(), sizes.whole_elements(), form.tp_overlap);
  }
  return list;
}

// Each rank looks up the tokens of its part of the vocabulary.
std::vector<LayerCollective> embedding_collectives(const TransformerConfig& config,
                                                   const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  std::vector<LayerCollective> list;
  if (sizes.tensor <= 1) return list;
  const double bytes = sizes.bytes(sizes.whole_elements());
  if (sizes.sequence) {
    add_collective(list, CollectiveKind::reduce_scatter, Dimension::tensor, bytes, {1, 0, 0});
    add_collective(list, CollectiveKind::all_gather, Dimension::tensor, bytes, {0, 0, 1});
  } else {
    add_collective(list, CollectiveKind::all_reduce, Dimension::tensor, bytes, {1, 0, 0});
  }
  return list;
}

// The product's columns are divided, its output is gathered, and with sequence parallelism each
// rank takes its rows of it, whose gradients are gathered.
std::vector<LayerCollective> joined_collectives(const TransformerConfig& config,
                                                const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  std::vector<LayerCollective> list;
  if (sizes.tensor <= 1) return list;
  const double made = sizes.bytes(sizes.whole_elements()) * std::max(sizes.streams, 1.0);
  const double read = made + sizes.bytes(sizes.whole_elements());
  if (sizes.sequence) {
    add_collective(list, CollectiveKind::all_gather, Dimension::tensor, read, {1, 0, 0});
    add_collective(list, CollectiveKind::reduce_scatter, Dimension::tensor, read, {0, 1, 0});
    add_collective(list, CollectiveKind::all_gather, Dimension::tensor, made, {1, 1, 0});
  } else {
    add_collective(list, CollectiveKind::all_gather, Dimension::tensor, made, {1, 0, 0});
    add_collective(list, CollectiveKind::all_reduce, Dimension::tensor, read, {0, 1, 0});
  }
  return list;
}

// The ranks' losses exchange the greatest logit of a row, the target's, and the sum of the
// exponentials, in fp32.
std::vector<LayerCollective> head_collectives(const TransformerConfig& config,
                                              const LanguageForm& form) {
  const RankSizes sizes = rank_sizes(config, form);
  std::vector<LayerCollective> list;
  if (sizes.tensor <= 1) return list;
  const double bytes = sizes.bytes(sizes.whole_elements());
  const int tokens = 1 + form.predictions;
  if (sizes.sequence) {
    add_collective(list, CollectiveKind::all_gather, Dimension::tensor, bytes, {tokens, 0, 0});
    add_collective(list, CollectiveKind::reduce_scatter, Dimension::tensor, bytes, {0, tokens, 0});
  } else {
    add_collective(list, CollectiveKind::all_reduce, Dimension::tensor, bytes, {0, tokens, 0});
  }
  add_collective(list, CollectiveKind::all_reduce, Dimension::tensor, single_bytes * sizes.tokens,
                 {3 * tokens, 0, 0});
  return list;
}

}  // namespace stageline
