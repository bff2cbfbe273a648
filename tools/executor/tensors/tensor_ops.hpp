// The ops that layers are made of, each as explicit passes over real tensors: forward, input
// gradient, weight gradient, and both gradients at once. Nothing here builds an autograd graph;
// where gradients are recorded (the check against autograd), `forward` alone runs.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "cost_models/shapes/shapes.hpp"

namespace stageline::executor {

/// A tensor that outlives the forward pass. Its reader is I alone, or W (and perhaps I).
struct KeptTensor {
  at::Tensor tensor;
  bool for_weight_grad = false;
};

/// What one op keeps of a micro-batch for its backward.
struct OpStash {
  std::vector<KeptTensor> kept;  // from F
  at::Tensor gradient;           // at the op's output: from I, for W
  std::vector<int64_t> size;     // of the op's input, where I needs it
};

/// The purpose of a forward pass, by which a batch norm chooses its statistics.
enum class Purpose : std::uint8_t {
  training,    // by the micro-batch's own statistics, which are added to the running ones
  again,       // the same a second time (recomputation): not added to the running ones again
  evaluation,  // by the running statistics: each sample for itself
};

/// What the slices of a sequence leave each other in one attention, by the slice's number (heads ×
/// tokens × width). Slices run F from the first to the last, and I from the last to the first.
struct SlicedAttention {
  std::vector<at::Tensor> keys;             // of the slices that have run F and not yet I
  std::vector<at::Tensor> values;           //
  std::vector<at::Tensor> key_gradients;    // from later slices, until the slice's own I has them
  std::vector<at::Tensor> value_gradients;  //
};

/// Tensors from outside the layer that some ops use.
struct Surroundings {
  at::Tensor skip;           // F: what `add` adds
  at::Tensor target;         // F: what `loss` compares with
  at::Tensor skip_gradient;  // I: what `add` sends back
  Purpose purpose = Purpose::training;
  SlicedAttention* slices = nullptr;  // F and I: of a slice; null: sequences are whole
  std::size_t slice = 0;              // its number
  std::int64_t begin = 0;             // tokens of its sequence before it
};

/// Weights and gradients of one op: views into its layer's, in the same order.
struct OpWeights {
  std::vector<at::Tensor> values;
  std::vector<at::Tensor>* gradients = nullptr;  // of the layer
  std::size_t first = 0;                         // where this op's begin in there
};

struct TensorOp;

/// The passes of one kind of op. Activations are batch × channels × height × width, or batch ×
/// features, or batch × sequence × features.
struct OpPasses {
  /// Sizes of the weights, in order.
  std::vector<std::vector<int64_t>> (*weights)(const TensorOp&);
  /// x → y. May work in place, if autograd allows it.
  at::Tensor (*forward)(const TensorOp&, const OpWeights&, at::Tensor x, OpStash&, Surroundings&);
  /// dL/dy → dL/dx. Normalizations add to their weights' gradients here.
  at::Tensor (*input_grad)(const TensorOp&, const OpWeights&, at::Tensor gradient, OpStash&,
                           Surroundings&);
  /// Adds to the gradients of the weights; null: there are none, or I has done it.
  void (*weight_grad)(const TensorOp&, const OpWeights&, OpStash&);
  /// Both at once; null: one after the other is no dearer.
  at::Tensor (*backward)(const TensorOp&, const OpWeights&, at::Tensor gradient, OpStash&);
};

/// An op ready to run.
struct TensorOp {
  Build build;
  const OpPasses* passes = nullptr;
  std::vector<at::Tensor> buffers;  // a norm's running statistics, the causal mask
};

/// The ops of a layer in order. The products and the softmax of an attention become one op. Buffers
/// are made on `like`'s device and of its type.
std::vector<TensorOp> tensor_ops(const LayerShape& layer, const at::TensorOptions& like);

/// Whether its buffers are running statistics, which forward passes change.
bool keeps_statistics(const TensorOp& op);

/// Adds `fresh` to the gradient, as autograd accumulates: the first is taken over as it is.
void accumulate(at::Tensor& gradient, at::Tensor fresh);

}  // namespace stageline::executor
