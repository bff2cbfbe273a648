// A built-in model as real tensors, made from the same table of shapes that the roofline prices
// (cost_models/shapes): its layers' passes over one micro-batch, and the optimizer's step.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "sim/base/units.hpp"
#include "tools/executor/tensors/optimizer_step.hpp"
#include "tools/executor/tensors/tensor_ops.hpp"

namespace stageline::executor {

struct TensorLayer {
  std::vector<TensorOp> ops;
  std::vector<std::size_t> first_weight;  // of each op, in the layer's
  int input = -1;                         // the layer that makes its input; -1: the data
  int skip = -1;                          // the layer whose output it adds; -1: none, or its input
};

struct TensorModel {
  ModelShape shape;
  Optimizer optimizer = Optimizer::momentum;
  at::TensorOptions options;  // device and number format of weights and activations
  std::vector<TensorLayer> layers;
  std::vector<LayerWeights> weights;
  std::vector<int> last_reader;  // of each layer's output; -1: none
};

/// The tokens of a sequence that a micro-batch has: all, or a slice.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;  // 0: as many as the model's shape says
  std::size_t slice = 0;   // the number of the slice
};

/// Tokens of a sequence as the shape says, the most that a micro-batch can have; 0: a sample is
/// none.
std::int64_t most_tokens(const ModelShape& shape);

/// A micro-batch: its data, and what passes compute and keep of it.
struct MicroBatch {
  at::Tensor input;                         // images, or tokens
  at::Tensor target;                        // class of each row of the logits
  std::vector<at::Tensor> outputs;          // by layer, until the last reader has read it
  std::vector<at::Tensor> gradients;        // at the outputs, until the layer's I (or B) has run
  std::vector<std::vector<OpStash>> stash;  // by layer and op
  double loss_weight = 1;                   // of its loss in what is differentiated
  Purpose purpose = Purpose::training;      // of the forward passes to come
  TokenRange tokens{};                      // of its sequences
  std::shared_ptr<std::vector<SlicedAttention>> slices{};  // by layer; shared by the slices of a
                                                           // sequence, null where it is whole
};

/// Random weights (He et al. 2015 for products) from the seed; equal for equal seed and options.
/// A layer has one input, and a second one where it adds a skip. `wanted`, by layer: the others get
/// no weights (empty: all are wanted); those of a layer do not depend on which others are there.
TensorModel tensor_model(const ModelShape& shape, Optimizer optimizer,
                         const at::TensorOptions& options, std::uint64_t seed,
                         const std::vector<bool>& wanted = {});

/// Random images or tokens and random classes. `tokens` of each sequence; 0: as the shape says.
MicroBatch random_micro_batch(const TensorModel& model, int batch, std::uint64_t seed,
                              std::int64_t tokens = 0);
/// A slice of the whole sequences of `batch`, which have run no pass.
MicroBatch slice_of(const MicroBatch& batch, TokenRange tokens);
/// One without input and target, for layers that see neither.
MicroBatch empty_micro_batch(const TensorModel& model);

// The passes of one layer over one micro-batch. Layers run F upwards, I downwards; W any time after
// I. A layer that reads the data has no I: its W does all (as in the table of shapes).
void forward(const TensorModel& model, std::size_t layer, MicroBatch& batch);
void input_grad(TensorModel& model, std::size_t layer, MicroBatch& batch);
/// I which no W follows: it keeps nothing.
void input_grad_alone(TensorModel& model, std::size_t layer, MicroBatch& batch);
void weight_grad(TensorModel& model, std::size_t layer, MicroBatch& batch);
/// I and W at once.
void backward(TensorModel& model, std::size_t layer, MicroBatch& batch);
/// W where I has not run: from the gradient at the layer's output down to the lowest op that has
/// weights. The gradient at the layer's input is not made.
void weight_grad_alone(TensorModel& model, std::size_t layer, MicroBatch& batch);

/// Whether the layer computes each sample by itself. A batch norm does not.
bool is_by_sample(const TensorModel& model, std::size_t layer);
/// `count` of the `all` samples, from `first` on, of what I of these layers reads: views of stashes
/// and gradients. The layers are by sample.
MicroBatch samples_of(const MicroBatch& batch, const std::vector<std::size_t>& layers,
                      std::int64_t all, std::int64_t first, std::int64_t count);

/// The optimizer's step on one layer: update() of its weights.
void update(TensorModel& model, std::size_t layer, const OptimizerStep& step,
            NewWeights put = NewWeights::in_place);

/// Sets gradients to zero, or makes them.
void zero_gradients(LayerWeights& weights);
void zero_gradients(TensorModel& model);

/// Forward through all layers with gradients recorded; returns the loss.
at::Tensor whole_forward(const TensorModel& model, MicroBatch& batch);
/// Autograd's backward; adds to the same gradients that the explicit passes add to.
void whole_backward(TensorModel& model, const at::Tensor& loss);

/// What a layer's outputs and stash are made of, once its F has run. As the table of shapes counts
/// them: every tensor once, a layer's input with its first reader.
struct LayerBytes {
  std::vector<std::int64_t> output;  // sizes of the whole micro-batch's output
  Bytes output_bytes{};
  Bytes stash_input_grad{};
  Bytes stash_weight_grad{};
  Bytes stash_gradient{};
  Bytes input_kept{};   // see Layer
  Bytes output_kept{};  //
};
/// Runs F and, to see what it keeps for W, I of all layers.
std::vector<LayerBytes> count_bytes(TensorModel& model, MicroBatch batch);

}  // namespace stageline::executor
