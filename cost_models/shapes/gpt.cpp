// A stack of transformer decoder blocks, pre-norm, as in GPT-2; the default is GPT-2 small.
//
//   embedding ─► [ attention ─► mlp ] × layers ─► norm ─► head
//
// Half a block is one layer, its layer norm and residual add inside, so the layers are a chain.
// Attention is plain: the seq × seq scores of every head are written to memory and kept (a fused
// kernel would not). The mask is not exploited: all seq² scores count.
//
// One rank of a tensor-parallel group of t, as in Megatron-LM (arXiv 1909.08053): its heads, its
// columns of the first product of each half and its rows of the second, its part of the vocabulary;
// biases behind the second product, norms and places are on every rank. With sequence parallelism
// (arXiv 2205.05198), norms, adds and dropouts work on seq/t rows. One rank of a context-parallel
// group of c has seq/c rows of everything and the keys and values of all:
//
//           forward                          backward
//   t       all-reduce                       all-reduce                      each half of a block
//   t, sp   all-gather … reduce-scatter      all-gather … reduce-scatter     each half of a block,
//                                            and all-gather of W's input
//   t       all-reduce of the embedding      all-reduce before the head      (sp: as above)
//           3 of a number a row in the loss
//   c       all-gather of K and V            all-gather of K and V, and
//                                            reduce-scatter of their gradients
//
// A ring of keys and values (Transformer Engine's "p2p") sends as many bytes as the all-gather and
// the reduce-scatter (its "all_gather", that of Llama 3, arXiv 2407.21783), beside attention rather
// than before it. Megatron-LM runs the all-gather of W's input and the backward's last collective
// beside products; here all block.
#include <fmt/core.h>

#include <utility>

#include "cost_models/shapes/primitives.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr ShapeKnob layers_knob{"layers", 12, 4096};
constexpr ShapeKnob hidden_knob{"hidden", 768, 65536};
constexpr ShapeKnob heads_knob{"heads", 12, 65536};  // when hidden is no multiple of 64
constexpr std::int64_t usual_head_width = 64;        // of all GPT-2 sizes
constexpr ShapeKnob seq_knob{"seq", 1024, 1 << 20};
constexpr ShapeKnob vocab_knob{"vocab", 50257, 1 << 22};
constexpr std::int64_t vocabulary_padding = 128;  // Megatron-LM's --make-vocab-size-divisible-by
constexpr std::int64_t loss_bytes = 4;            // of a number that the ranks' losses exchange

std::int64_t heads_of(const ShapeOptions& options) {
  const std::int64_t hidden = value("gpt", options, hidden_knob);
  const bool said = options.count(heads_knob.name) > 0;
  if (said || hidden % usual_head_width != 0) return value("gpt", options, heads_knob);
  return hidden / usual_head_width;
}

// Sizes of the model, and of one rank.
struct GptSize {
  std::int64_t hidden, heads, seq, vocab;
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  bool sequence = false;
  bool dropout = false;

  std::int64_t rows() const { return seq / context; }
  // Where a rank does not have a part of each row.
  std::int64_t norm_rows() const { return sequence ? rows() / tensor : rows(); }
  std::int64_t norm_elements() const { return norm_rows() * hidden; }
  // A rank's part of a tensor as wide as the model, which the ranks share by columns.
  std::int64_t part() const { return rows() * hidden / tensor; }
};

void check_multiple(const char* what, std::int64_t number, const std::string& of,
                    std::int64_t divisor, const std::string& hint = {}) {
  if (number % divisor == 0) return;
  throw UsageError(fmt::format("gpt: {} must be a multiple of {}, and {} is not one of {}{}", what,
                               of, number, divisor, hint));
}

GptSize size_of(const ShapeOptions& options, const TrainingForm& form) {
  GptSize z{value("gpt", options, hidden_knob), heads_of(options), value("gpt", options, seq_knob),
            value("gpt", options, vocab_knob)};
  z.tensor = form.sharding.tensor;
  z.context = form.sharding.context;
  z.sequence = form.sharding.sequence && z.tensor > 1;
  z.dropout = form.dropout;
  check_multiple("hidden", z.hidden, "heads", z.heads);
  if (form.sharding.expert != 1) {
    throw UsageError(fmt::format("gpt has no experts that ep {} could divide; leave ep at 1",
                                 form.sharding.expert));
  }
  if (form.sharding.folded()) {
    throw UsageError(fmt::format("gpt has no experts that etp {} could divide; leave etp out",
                                 form.sharding.expert_tensor));
  }
  check_multiple("heads", z.heads, "tp", z.tensor);  // and so hidden and the MLP's width are
  const std::int64_t step = vocabulary_padding * z.tensor;
  check_multiple("vocab", z.vocab, "tp", z.tensor,
                 fmt::format("; padded to a multiple of {}·tp as in Megatron-LM it is vocab={}",
                             vocabulary_padding, (z.vocab + step - 1) / step * step));
  check_multiple("seq", z.seq, "cp", z.context);
  if (z.sequence) check_multiple("seq", z.seq, "cp·tp with sp", z.context * z.tensor);
  return z;
}

CollectiveShape collective(CollectiveKind kind, Dimension group, std::int64_t elements, int forward,
                           int input_grad, int weight_grad = 0) {
  return {kind, group, elements, 0, forward, input_grad, weight_grad};
}

// Around two products, the first divided by columns, the second by rows.
std::vector<CollectiveShape> around_products(GptSize z) {
  if (z.tensor == 1) return {};
  const std::int64_t whole = z.rows() * z.hidden;
  if (!z.sequence) {
    return {collective(CollectiveKind::all_reduce, Dimension::tensor, whole, 1, 1)};
  }
  return {collective(CollectiveKind::all_gather, Dimension::tensor, whole, 1, 1, 1),
          collective(CollectiveKind::reduce_scatter, Dimension::tensor, whole, 1, 1)};
}

// Kept: x and its statistics, the normed x, q, k and v, the probabilities, the context. For W: the
// inputs of the two linears and the gradients at their outputs.
LayerShape attention(std::string name, GptSize z) {
  const std::int64_t whole = z.norm_elements();
  const std::int64_t part = z.part();
  const std::int64_t heads = z.heads / z.tensor;
  const std::int64_t width = z.hidden / z.heads;
  const std::int64_t scores = heads * z.rows() * z.seq;
  const std::int64_t kept_scores = z.dropout ? 2 * scores : scores;
  Primitive probabilities = softmax(scores);
  Primitive sum = add(whole, whole);
  if (z.dropout) {
    probabilities = with_dropout(probabilities, scores, false);
    sum = with_dropout(sum, whole, true);
  }
  LayerShape shape = layer(
      std::move(name), "attention",
      {layer_norm(z.norm_rows(), z.hidden),
       linear(z.rows(), z.hidden, 3 * z.hidden / z.tensor, true),
       matmul(heads, z.rows(), width, z.seq), probabilities, matmul(heads, z.rows(), z.seq, width),
       linear(z.rows(), z.hidden / z.tensor, z.hidden, true), sum},
      {z.norm_rows(), z.hidden}, 2 * whole + 4 * part + kept_scores + 2 * z.norm_rows(),
      whole + 4 * part + z.rows() * z.hidden);
  shape.selective_begin = 2;
  shape.selective_end = 5;
  shape.selective_stash = kept_scores;
  if (z.dropout) {
    shape.masks = scores + whole;
    shape.selective_masks = scores;
  }
  shape.collectives = around_products(z);
  if (z.context > 1) {
    const std::int64_t keys_and_values = 2 * z.seq * z.hidden / z.tensor;
    shape.collectives.push_back(
        collective(CollectiveKind::all_gather, Dimension::context, keys_and_values, 1, 1));
    shape.collectives.push_back(
        collective(CollectiveKind::reduce_scatter, Dimension::context, keys_and_values, 0, 1));
  }
  return shape;
}

// Kept: x and its statistics, the normed x, what goes into the GELU, what comes out.
LayerShape mlp(std::string name, GptSize z) {
  const std::int64_t whole = z.norm_elements();
  const std::int64_t part = z.part();
  const std::int64_t width = 4 * z.hidden / z.tensor;
  Primitive sum = add(whole, whole);
  if (z.dropout) sum = with_dropout(sum, whole, true);
  LayerShape shape =
      layer(std::move(name), "mlp",
            {layer_norm(z.norm_rows(), z.hidden), linear(z.rows(), z.hidden, width, true),
             gelu(4 * part), linear(z.rows(), width, z.hidden, true), sum},
            {z.norm_rows(), z.hidden}, 2 * whole + 8 * part + 2 * z.norm_rows(),
            whole + 8 * part + z.rows() * z.hidden);
  if (z.dropout) shape.masks = whole;
  shape.collectives = around_products(z);
  return shape;
}

// Each rank looks up the tokens of its part of the vocabulary.
LayerShape embedding_layer(GptSize z) {
  std::vector<Primitive> ops = {embedding(z.rows(), z.hidden, z.vocab / z.tensor, z.seq)};
  if (z.dropout) {
    Primitive drop;
    drop.kind = PrimitiveKind::add;
    ops.push_back(with_dropout(drop, z.norm_elements(), false));
  }
  LayerShape shape = layer("embedding", "embedding", std::move(ops), {z.norm_rows(), z.hidden},
                           z.rows(), z.rows());
  if (z.dropout) shape.masks = z.norm_elements();
  const std::int64_t whole = z.rows() * z.hidden;
  if (z.sequence) {
    shape.collectives = {collective(CollectiveKind::reduce_scatter, Dimension::tensor, whole, 1, 0),
                         collective(CollectiveKind::all_gather, Dimension::tensor, whole, 0, 0, 1)};
  } else if (z.tensor > 1) {
    shape.collectives = {collective(CollectiveKind::all_reduce, Dimension::tensor, whole, 1, 0)};
  }
  return first_layer(std::move(shape));
}

// Weights are the embedding's: held once more, counted once. The ranks' losses exchange the
// greatest logit of a row, the target's, and the sum of the exponentials.
LayerShape output_layer(GptSize z) {
  const std::int64_t vocab = z.vocab / z.tensor;
  const std::int64_t logits = z.rows() * vocab;
  LayerShape shape =
      layer("head", "linear", {linear(z.rows(), z.hidden, vocab, false), loss(logits)},
            {z.rows(), vocab}, z.norm_elements() + logits, z.norm_elements() + logits);
  shape.parameters = 0;
  if (z.tensor == 1) return shape;
  const std::int64_t whole = z.rows() * z.hidden;
  if (z.sequence) {
    shape.collectives = {
        collective(CollectiveKind::all_gather, Dimension::tensor, whole, 1, 0, 1),
        collective(CollectiveKind::reduce_scatter, Dimension::tensor, whole, 0, 1)};
  } else {
    shape.collectives = {collective(CollectiveKind::all_reduce, Dimension::tensor, whole, 0, 1)};
  }
  CollectiveShape numbers = collective(CollectiveKind::all_reduce, Dimension::tensor, 0, 3, 0);
  numbers.bytes = loss_bytes * z.rows();
  shape.collectives.push_back(numbers);
  return shape;
}

std::vector<std::string> notes_of(GptSize z) {
  std::vector<std::string> notes = {
      "attention is plain: its seq x seq probabilities are written and kept"};
  if (z.tensor > 1 || z.context > 1) {
    notes.push_back(fmt::format("the layers are those of one rank: tp {}{}, cp {}", z.tensor,
                                z.sequence ? " with sequence parallelism" : "", z.context));
  }
  if (z.dropout) notes.emplace_back("dropout keeps a mask of one byte an element");
  return notes;
}

}  // namespace

ModelShape gpt(const ShapeOptions& options, const TrainingForm& form) {
  const std::int64_t blocks = value("gpt", options, layers_knob);
  const GptSize z = size_of(options, form);
  ModelShape model;
  model.name = "gpt";
  model.sample = "sequence";
  model.input = z.rows();
  model.usual_batch = 8;
  model.usual_optimizer = "adam";
  model.source = "Radford et al. 2019, Language Models are Unsupervised Multitask Learners";
  model.notes = notes_of(z);
  model.sharding = {static_cast<int>(z.tensor), static_cast<int>(z.context), 1, z.sequence};
  model.layers.push_back(embedding_layer(z));
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::string block = "h." + std::to_string(i);
    model.layers.push_back(attention(block + ".attention", z));
    model.layers.push_back(mlp(block + ".mlp", z));
  }
  model.layers.push_back(layer("norm", "norm", {layer_norm(z.norm_rows(), z.hidden)},
                               {z.norm_rows(), z.hidden}, z.norm_elements() + 2 * z.norm_rows(),
                               0));
  model.layers.push_back(output_layer(z));
  return finished(std::move(model));
}

}  // namespace stageline
