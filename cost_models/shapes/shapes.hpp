// Built-in models as values: what each layer computes, reads and keeps, per sample, before any
// device or number format prices it (cost_models/roofline.hpp does).
//
// One layer is what nobody would cut inside: a convolution or linear layer with the batch norm, the
// residual add and the ReLU behind it; half a transformer block. Pools are layers of their own:
// they have no weights, and the cheapest place to cut a convolutional net is behind one. Left out,
// since they move next to nothing: biases' FLOPs, flatten, dropout, and average pools that change
// nothing.
//
// FLOPs: a multiply-accumulate counts 2. Bytes: every primitive op reads its operands from device
// memory and writes its result there, once, except that a batch norm needs the statistics of the
// whole micro-batch before it can normalize and so reads its operands twice.
//
// Who keeps what from forward to backward, so that every tensor is counted once:
//   * a layer stashes its own INPUT, if its ops or the ReLU that made it read it backward, and the
//     tensors inside it; its output belongs to the next layer. (Behind a cut, the ReLU at the end
//     of the sending stage reads an output that is counted on the receiving side only.)
//   * an input that several layers read belongs to the first of them.
//   * W still needs what its ops read (their inputs) and the gradients at their outputs, which I
//     writes where the tensors that only I reads stood: stash_weight_grad is the smaller of that
//     sum and the whole stash; stash_input_grad the rest. Where W's needs are larger, as for a
//     convolution without batch norm, I adds what is lacking: stash_gradient. With a transformer
//     layer this gives 32·s·b·h bytes for W, as in Zero Bubble (arXiv 2401.10241).
//   * a layer without input gradient does nothing in I, so the gradient at its output waits for W.
//   * batch norm's statistics, two numbers a channel and micro-batch, are not counted.
//   * dropout, where a model has it, keeps its masks, a byte an element.
// Where a model is divided (Sharding), all of this is of one rank; activations that all ranks of a
// tensor-parallel group hold are counted on each.
// The gradients of a norm's own weights are part of I. A layer without input gradient (images and
// token ids need none) does all its backward work in W.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model.hpp"

namespace stageline {

enum class PrimitiveKind : std::uint8_t {
  conv,
  linear,
  matmul,  // of two activations
  batch_norm,
  layer_norm,
  relu,
  gelu,  // by the tanh formula, as GPT-2
  add,   // of a skip connection; backward, the sum of the gradients where the branches part
  max_pool,
  average_pool,
  softmax,
  embedding,
  loss,  // softmax and cross entropy
};
std::string_view name(PrimitiveKind kind);

/// What one pass over one primitive op does. Per sample, but for `_once`: per micro-batch.
struct Work {
  std::int64_t flops = 0;
  std::int64_t reads = 0;        // elements
  std::int64_t writes = 0;       // elements
  std::int64_t reads_once = 0;   // elements: weights
  std::int64_t writes_once = 0;  // elements: weight gradients

  Work& operator+=(const Work& other);
  friend bool operator==(const Work&, const Work&) = default;
};

/// The arguments that an executor builds an op from; those that its kind does not have are 0.
struct Build {
  std::int64_t in = 0;       // channels or features; of an embedding, rows of the token table
  std::int64_t out = 0;      // channels or features
  std::int64_t kernel = 0;   // of a convolution or pool, square
  std::int64_t stride = 0;   // of a convolution or pool
  std::int64_t padding = 0;  // of a convolution or pool
  std::int64_t heads = 0;    // products that run side by side
  std::int64_t places = 0;   // rows of an embedding's second table
  bool bias = false;

  friend bool operator==(const Build&, const Build&) = default;
};

struct Primitive {
  PrimitiveKind kind = PrimitiveKind::conv;
  Build build;
  Work forward;
  Work input_grad;
  Work weight_grad;
  std::int64_t weights = 0;  // elements

  friend bool operator==(const Primitive&, const Primitive&) = default;
};

/// A collective of a layer, as LayerCollective but for one sample.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::tensor;
  std::int64_t elements = 0;  // of the full tensor of a rank, in the number format of activations
  std::int64_t bytes = 0;     // beyond these, in a format of their own
  int forward = 0;
  int input_grad = 0;
  int weight_grad = 0;

  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

struct LayerShape {
  std::string name;  // "layer2.0.conv1"
  std::string kind;  // "conv", "linear", "pool", "embedding", "attention", "mlp", "norm"
  std::vector<Primitive> ops;
  std::vector<std::int64_t> output;  // of one sample: {64, 112, 112}, {1000}, {1024, 768}
  std::int64_t weights = 0;          // elements the layer holds
  std::int64_t parameters = 0;       // elements that count: 0 where the weights are another layer's
  std::int64_t stash_input_grad = 0;   // elements per sample; see above
  std::int64_t stash_weight_grad = 0;  // elements per sample
  std::int64_t stash_gradient = 0;     // elements per sample
  std::int64_t masks = 0;            // bytes per sample: dropout's masks, kept as long as I's stash
  int selective_begin = 0;           // ops [selective_begin, selective_end) are those that
  int selective_end = 0;             // selective recomputation repeats, which rebuilds
  std::int64_t selective_stash = 0;  // so many elements per sample of the stash
  std::int64_t selective_masks = 0;  // and so many bytes per sample of the masks
  std::vector<CollectiveShape> collectives;

  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

struct ModelShape {
  std::string name;    // "resnet50"
  std::string sample;  // "image", "sequence"
  std::vector<LayerShape> layers;
  std::vector<LayerEdge> edges;    // empty: a chain. The first into a layer is its input, the other
                                   // what its `add` adds
  std::int64_t input = 0;          // elements per sample
  std::int64_t parameters = 0;     // sum over the layers
  int usual_batch = 32;            // samples in a micro-batch, the default
  std::string usual_optimizer;     // "momentum", "adam"
  std::string source;              // the paper
  std::vector<std::string> notes;  // for the provenance of what is made from it
  Sharding sharding{};             // the degrees that its layers are divided by

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// By name: "layers" → 24. All whole numbers from 1.
using ShapeOptions = std::map<std::string, std::int64_t>;

/// How a transformer is trained, beside its size.
struct TrainingForm {
  Sharding sharding{};   // the layers are those of one rank
  bool dropout = false;  // behind the attention's softmax, both halves of a block and the embedding
  friend bool operator==(const TrainingForm&, const TrainingForm&) = default;
};

/// Throws UsageError on an unknown model or option, with the nearest name, on numbers that do
/// not fit together, such as heads that the tensor-parallel ranks cannot share equally, and on a
/// form that the model does not have.
ModelShape model_shape(const std::string& name, const ShapeOptions& options = {},
                       const TrainingForm& form = {});

/// All models, small to large within a family, and one line about each.
std::vector<std::string> model_names();
std::string_view model_summary(const std::string& name);

/// The names of the options of a model: those of gpt are layers, hidden, heads (default hidden/64),
/// seq and vocab. LeNet-5 and all CIFAR-10 forms have width: the channels of the first convolution;
/// all other channels and features, but data and classes, in proportion, rounded up.
std::vector<std::string> model_options(const std::string& name);

/// Whether the model has forms: it says what its ranks compute, keep and exchange.
bool has_forms(const std::string& name);

/// The sum of one pass over a layer's ops: total(layer, &Primitive::forward).
Work total(const LayerShape& layer, Work Primitive::*pass);

/// Elements of the layer's output, per sample.
std::int64_t output_elements(const LayerShape& layer);

}  // namespace stageline
