// A stack of transformer decoder blocks, pre-norm, as in GPT-2; the default is GPT-2 small.
//
//   embedding ─► [ attention ─► mlp ] × layers ─► norm ─► head
//
// Half a block is one layer, its layer norm and residual add inside, so the layers are a chain.
// Attention is plain: the seq × seq scores of every head are written to memory and kept (a fused
// kernel would not). The mask is not exploited: all seq² scores count. No dropout.
#include <fmt/core.h>

#include <utility>

#include "cost_models/shapes/primitives.hpp"
#include "sim/errors.hpp"

namespace stageline {
namespace {

constexpr ShapeKnob layers_knob{"layers", 12, 4096};
constexpr ShapeKnob hidden_knob{"hidden", 768, 65536};
constexpr ShapeKnob heads_knob{"heads", 12, 65536};  // when hidden is no multiple of 64
constexpr std::int64_t usual_head_width = 64;        // of all GPT-2 sizes
constexpr ShapeKnob seq_knob{"seq", 1024, 1 << 20};
constexpr ShapeKnob vocab_knob{"vocab", 50257, 1 << 22};

std::int64_t heads_of(const ShapeOptions& options) {
  const std::int64_t hidden = value("gpt", options, hidden_knob);
  const bool said = options.count(heads_knob.name) > 0;
  if (said || hidden % usual_head_width != 0) return value("gpt", options, heads_knob);
  return hidden / usual_head_width;
}

struct Size {
  std::int64_t hidden, heads, seq, vocab;
};

// Kept: x and its statistics, the normed x, q, k and v, the probabilities, the context. For W: the
// inputs of the two linears and the gradients at their outputs.
LayerShape attention(std::string name, Size z) {
  const std::int64_t sh = z.seq * z.hidden;
  const std::int64_t scores = z.heads * z.seq * z.seq;
  const std::int64_t width = z.hidden / z.heads;
  return layer(
      std::move(name), "attention",
      {layer_norm(z.seq, z.hidden), linear(z.seq, z.hidden, 3 * z.hidden, true),
       matmul(z.heads, z.seq, width, z.seq), softmax(scores), matmul(z.heads, z.seq, z.seq, width),
       linear(z.seq, z.hidden, z.hidden, true), add(sh, sh)},
      {z.seq, z.hidden}, 6 * sh + scores + 2 * z.seq, 6 * sh);
}

// Kept: x and its statistics, the normed x, what goes into the GELU, what comes out.
LayerShape mlp(std::string name, Size z) {
  const std::int64_t sh = z.seq * z.hidden;
  return layer(std::move(name), "mlp",
               {layer_norm(z.seq, z.hidden), linear(z.seq, z.hidden, 4 * z.hidden, true),
                gelu(4 * sh), linear(z.seq, 4 * z.hidden, z.hidden, true), add(sh, sh)},
               {z.seq, z.hidden}, 10 * sh + 2 * z.seq, 10 * sh);
}

// Weights are the embedding's: held once more, counted once.
LayerShape output_layer(Size z) {
  const std::int64_t sh = z.seq * z.hidden;
  const std::int64_t logits = z.seq * z.vocab;
  LayerShape shape =
      layer("head", "linear", {linear(z.seq, z.hidden, z.vocab, false), loss(logits)},
            {z.seq, z.vocab}, sh + logits, sh + logits);
  shape.parameters = 0;
  return shape;
}

}  // namespace

ModelShape gpt(const ShapeOptions& options) {
  const std::int64_t blocks = value("gpt", options, layers_knob);
  const Size z{value("gpt", options, hidden_knob), heads_of(options),
               value("gpt", options, seq_knob), value("gpt", options, vocab_knob)};
  if (z.hidden % z.heads != 0) {
    throw UsageError(fmt::format("gpt: hidden must be a multiple of heads, and {} is not one of {}",
                                 z.hidden, z.heads));
  }
  ModelShape model;
  model.name = "gpt";
  model.sample = "sequence";
  model.input = z.seq;
  model.usual_batch = 8;
  model.usual_optimizer = "adam";
  model.source = "Radford et al. 2019, Language Models are Unsupervised Multitask Learners";
  model.notes = {
      "the head's weights are the embedding's; both layers hold them, since a pipeline "
      "puts them on different devices",
      "attention is plain: its seq x seq probabilities are written and kept"};
  model.layers.push_back(
      first_layer(layer("embedding", "embedding", {embedding(z.seq, z.hidden, z.vocab)},
                        {z.seq, z.hidden}, z.seq, z.seq)));
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::string block = "h." + std::to_string(i);
    model.layers.push_back(attention(block + ".attention", z));
    model.layers.push_back(mlp(block + ".mlp", z));
  }
  model.layers.push_back(layer("norm", "norm", {layer_norm(z.seq, z.hidden)}, {z.seq, z.hidden},
                               z.seq * z.hidden + 2 * z.seq, 0));
  model.layers.push_back(output_layer(z));
  return finished(std::move(model));
}

}  // namespace stageline
