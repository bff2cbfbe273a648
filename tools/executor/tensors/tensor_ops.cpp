// The passes of all ops but products.
#include "tools/executor/tensors/tensor_ops.hpp"

#include <limits>
#include <utility>

#include "tools/executor/tensors/tensor_passes.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;

// --- normalizations

constexpr double epsilon = 1e-5;
constexpr double momentum = 0.1;

Sizes norm_weights(const TensorOp& op) { return {{op.build.in}, {op.build.in}}; }

// By the entry that picks cuDNN where it is better, as at::batch_norm does.
Tensor batch_norm_forward(const TensorOp& op, const OpWeights& w, Tensor x, OpStash& stash,
                          Surroundings& around) {
  const bool taken_in = around.purpose == Purpose::again;
  auto [y, mean, deviation, reserve, chosen] =
      at::_batch_norm_impl_index(x, w.values[0], w.values[1], taken_in ? Tensor() : op.buffers[0],
                                 taken_in ? Tensor() : op.buffers[1],
                                 around.purpose != Purpose::evaluation, momentum, epsilon, true);
  stash.kept = {{x, false}, {mean, false}, {deviation, false}, {reserve, false}};
  stash.size = {chosen};
  return y;
}

Tensor batch_norm_input_grad(const TensorOp& op, const OpWeights& w, Tensor gradient,
                             OpStash& stash, Surroundings&) {
  const auto kept = [&](std::size_t i) { return stash.kept[i].tensor; };
  auto [input, weight, bias] = at::_batch_norm_impl_index_backward(
      stash.size[0], kept(0), gradient.contiguous(), w.values[0], op.buffers[0], op.buffers[1],
      kept(1), kept(2), true, epsilon, {true, true, true}, kept(3));
  accumulate(gradient_of(w, 0), std::move(weight));
  accumulate(gradient_of(w, 1), std::move(bias));
  return input;
}

Tensor layer_norm_forward(const TensorOp& op, const OpWeights& w, Tensor x, OpStash& stash,
                          Surroundings&) {
  auto [y, mean, deviation] =
      at::native_layer_norm(x, {op.build.in}, w.values[0], w.values[1], epsilon);
  stash.kept = {{x, false}, {mean, false}, {deviation, false}};
  return y;
}

Tensor layer_norm_input_grad(const TensorOp& op, const OpWeights& w, Tensor gradient,
                             OpStash& stash, Surroundings&) {
  auto [input, weight, bias] = at::native_layer_norm_backward(
      gradient, stash.kept[0].tensor, {op.build.in}, stash.kept[1].tensor, stash.kept[2].tensor,
      w.values[0], w.values[1], {true, true, true});
  accumulate(gradient_of(w, 0), std::move(weight));
  accumulate(gradient_of(w, 1), std::move(bias));
  return input;
}

// --- element by element

// In place; backward reads the result.
Tensor relu_forward(const TensorOp&, const OpWeights&, Tensor x, OpStash& stash, Surroundings&) {
  x.relu_();
  stash.kept.push_back({x, false});
  return x;
}

Tensor relu_input_grad(const TensorOp&, const OpWeights&, Tensor gradient, OpStash& stash,
                       Surroundings&) {
  return at::threshold_backward(gradient, stash.kept[0].tensor, 0);
}

Tensor gelu_forward(const TensorOp&, const OpWeights&, Tensor x, OpStash& stash, Surroundings&) {
  stash.kept.push_back({x, false});
  return at::gelu(x, "tanh");
}

Tensor gelu_input_grad(const TensorOp&, const OpWeights&, Tensor gradient, OpStash& stash,
                       Surroundings&) {
  return at::gelu_backward(gradient, stash.kept[0].tensor, "tanh");
}

// A skip of another size is the shortcut without weights of the CIFAR nets: every `step`-th pixel,
// and zeros for the channels that it lacks (He et al., arXiv 1512.03385, option A).
Tensor every(const Tensor& image, int64_t step) {
  return image.slice(2, 0, image.size(2), step).slice(3, 0, image.size(3), step);
}

Tensor add_forward(const TensorOp&, const OpWeights&, Tensor x, OpStash& stash,
                   Surroundings& around) {
  const Tensor& skip = around.skip;
  stash.size = skip.sizes().vec();
  if (skip.sizes() == x.sizes()) return x.add_(skip);
  const Tensor thinned = every(skip, skip.size(2) / x.size(2));
  return x.add_(at::constant_pad_nd(thinned, {0, 0, 0, 0, 0, x.size(1) - skip.size(1)}));
}

Tensor add_input_grad(const TensorOp&, const OpWeights&, Tensor gradient, OpStash& stash,
                      Surroundings& around) {
  if (gradient.sizes() == at::IntArrayRef(stash.size)) {
    around.skip_gradient = gradient;
    return gradient;
  }
  around.skip_gradient = at::zeros(stash.size, gradient.options());
  every(around.skip_gradient, stash.size[2] / gradient.size(2))
      .copy_(gradient.narrow(1, 0, stash.size[1]));
  return gradient;
}

// --- pools

Tensor max_pool_forward(const TensorOp& op, const OpWeights&, Tensor x, OpStash& stash,
                        Surroundings&) {
  const Build& b = op.build;
  auto [y, places] = at::max_pool2d_with_indices(x, {b.kernel, b.kernel}, {b.stride, b.stride},
                                                 {b.padding, b.padding});
  stash.kept = {{x, false}, {places, false}};
  return y;
}

Tensor max_pool_input_grad(const TensorOp& op, const OpWeights&, Tensor gradient, OpStash& stash,
                           Surroundings&) {
  const Build& b = op.build;
  const Tensor& x = stash.kept[0].tensor;
  return at::max_pool2d_with_indices_backward(gradient, x, {b.kernel, b.kernel},
                                              {b.stride, b.stride}, {b.padding, b.padding}, {1, 1},
                                              false, stash.kept[1].tensor);
}

Tensor average_pool_forward(const TensorOp&, const OpWeights&, Tensor x, OpStash& stash,
                            Surroundings&) {
  stash.size = x.sizes().vec();
  return at::mean(x, at::IntArrayRef({2, 3}));
}

Tensor average_pool_input_grad(const TensorOp&, const OpWeights&, Tensor gradient, OpStash& stash,
                               Surroundings&) {
  return gradient.unsqueeze(2)
      .unsqueeze(3)
      .expand(stash.size)
      .div(static_cast<double>(stash.size[2] * stash.size[3]));
}

// --- the loss

constexpr int64_t mean_reduction = 1;
constexpr int64_t ignored_target = -100;

// Softmax and cross entropy, the mean over all rows: one number.
Tensor loss_forward(const TensorOp&, const OpWeights&, Tensor x, OpStash& stash,
                    Surroundings& around) {
  const Tensor logs = at::_log_softmax(x.view({-1, x.size(-1)}), 1, false);
  auto [loss, weight] =
      at::nll_loss_forward(logs, around.target, {}, mean_reduction, ignored_target);
  stash.kept = {{logs, false}, {weight, false}, {around.target, false}};
  stash.size = x.sizes().vec();
  return loss;
}

Tensor loss_input_grad(const TensorOp&, const OpWeights&, Tensor gradient, OpStash& stash,
                       Surroundings&) {
  const Tensor& logs = stash.kept[0].tensor;
  const Tensor g = at::nll_loss_backward(gradient, logs, stash.kept[2].tensor, {}, mean_reduction,
                                         ignored_target, stash.kept[1].tensor);
  return at::_log_softmax_backward_data(g, logs, 1, logs.scalar_type()).view(stash.size);
}

const OpPasses batch_norm_passes{norm_weights, batch_norm_forward, batch_norm_input_grad, nullptr,
                                 nullptr};
const OpPasses layer_norm_passes{norm_weights, layer_norm_forward, layer_norm_input_grad, nullptr,
                                 nullptr};
const OpPasses relu_passes{no_weights, relu_forward, relu_input_grad, nullptr, nullptr};
const OpPasses gelu_passes{no_weights, gelu_forward, gelu_input_grad, nullptr, nullptr};
const OpPasses add_passes{no_weights, add_forward, add_input_grad, nullptr, nullptr};
const OpPasses max_pool_passes{no_weights, max_pool_forward, max_pool_input_grad, nullptr, nullptr};
const OpPasses average_pool_passes{no_weights, average_pool_forward, average_pool_input_grad,
                                   nullptr, nullptr};
const OpPasses loss_passes{no_weights, loss_forward, loss_input_grad, nullptr, nullptr};

// Null where the op before it has taken this one in.
const OpPasses* passes_of(PrimitiveKind kind) {
  switch (kind) {
    case PrimitiveKind::conv:
      return &conv_passes;
    case PrimitiveKind::linear:
      return &linear_passes;
    case PrimitiveKind::matmul:
      return &attention_passes;
    case PrimitiveKind::batch_norm:
      return &batch_norm_passes;
    case PrimitiveKind::layer_norm:
      return &layer_norm_passes;
    case PrimitiveKind::relu:
      return &relu_passes;
    case PrimitiveKind::gelu:
      return &gelu_passes;
    case PrimitiveKind::add:
      return &add_passes;
    case PrimitiveKind::max_pool:
      return &max_pool_passes;
    case PrimitiveKind::average_pool:
      return &average_pool_passes;
    case PrimitiveKind::softmax:
      return nullptr;
    case PrimitiveKind::embedding:
      return &embedding_passes;
    case PrimitiveKind::loss:
      return &loss_passes;
  }
  return nullptr;  // unreachable; g++ wants it
}

std::vector<Tensor> buffers_of(const Primitive& op, const LayerShape& layer,
                               const at::TensorOptions& like) {
  if (op.kind == PrimitiveKind::batch_norm) {
    return {at::zeros({op.build.in}, like), at::ones({op.build.in}, like)};
  }
  if (op.kind == PrimitiveKind::matmul) {
    const int64_t places = layer.output[0];
    return {at::full({places, places}, -std::numeric_limits<double>::infinity(), like).triu_(1)};
  }
  return {};
}

}  // namespace

std::vector<TensorOp> tensor_ops(const LayerShape& layer, const at::TensorOptions& like) {
  std::vector<TensorOp> ops;
  bool in_attention = false;
  for (const Primitive& primitive : layer.ops) {
    const bool product = primitive.kind == PrimitiveKind::matmul;
    const bool taken_in = primitive.kind == PrimitiveKind::softmax || (product && in_attention);
    if (product) in_attention = !in_attention;
    if (taken_in) continue;
    ops.push_back({primitive.build, passes_of(primitive.kind), buffers_of(primitive, layer, like)});
  }
  return ops;
}

bool keeps_statistics(const TensorOp& op) { return op.passes == &batch_norm_passes; }

void accumulate(Tensor& gradient, Tensor fresh) {
  if (gradient.defined()) {
    gradient.add_(fresh);
  } else {
    gradient = std::move(fresh);
  }
}

}  // namespace stageline::executor
