// Ops whose weights have gradients of their own to compute apart, and attention, which is products
// all the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/executor/tensors/tensor_passes.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;

// --- convolution

Sizes conv_weights(const TensorOp& op) {
  const Build& b = op.build;
  Sizes sizes = {{b.out, b.in, b.kernel, b.kernel}};
  if (b.bias) sizes.push_back({b.out});
  return sizes;
}

Tensor conv_forward(const TensorOp& op, const OpWeights& w, Tensor x, OpStash& stash,
                    Surroundings&) {
  const Build& b = op.build;
  stash.kept.push_back({x, true});
  return at::conv2d(x, w.values[0], b.bias ? w.values[1] : Tensor(), {b.stride, b.stride},
                    {b.padding, b.padding});
}

// What autograd calls too; the mask says which of the three gradients are wanted.
std::tuple<Tensor, Tensor, Tensor> conv_gradients(const TensorOp& op, const OpWeights& w,
                                                  const Tensor& gradient, const OpStash& stash,
                                                  std::array<bool, 3> mask) {
  const Build& b = op.build;
  const std::array<int64_t, 1> bias_size{b.out};
  return at::convolution_backward(
      gradient, stash.kept[0].tensor, w.values[0],
      b.bias ? at::OptionalIntArrayRef(bias_size) : at::OptionalIntArrayRef(), {b.stride, b.stride},
      {b.padding, b.padding}, {1, 1}, false, {0, 0}, 1, mask);
}

void add_conv_gradients(const OpWeights& w, Tensor weight, Tensor bias) {
  accumulate(gradient_of(w, 0), std::move(weight));
  if (w.values.size() > 1) accumulate(gradient_of(w, 1), std::move(bias));
}

Tensor conv_input_grad(const TensorOp& op, const OpWeights& w, Tensor gradient, OpStash& stash,
                       Surroundings&) {
  Tensor result = std::get<0>(conv_gradients(op, w, gradient, stash, {true, false, false}));
  stash.gradient = std::move(gradient);
  return result;
}

void conv_weight_grad(const TensorOp& op, const OpWeights& w, OpStash& stash) {
  auto [unused, weight, bias] =
      conv_gradients(op, w, stash.gradient, stash, {false, true, op.build.bias});
  add_conv_gradients(w, std::move(weight), std::move(bias));
}

Tensor conv_backward(const TensorOp& op, const OpWeights& w, Tensor gradient, OpStash& stash) {
  auto [input, weight, bias] = conv_gradients(op, w, gradient, stash, {true, true, op.build.bias});
  add_conv_gradients(w, std::move(weight), std::move(bias));
  return input;
}

// --- linear: rows × in → rows × out

Sizes linear_weights(const TensorOp& op) {
  const Build& b = op.build;
  Sizes sizes = {{b.out, b.in}};
  if (b.bias) sizes.push_back({b.out});
  return sizes;
}

// Images are flattened; of a sequence each place is a row.
Tensor linear_forward(const TensorOp& op, const OpWeights& w, Tensor x, OpStash& stash,
                      Surroundings&) {
  const Build& b = op.build;
  stash.size = x.sizes().vec();
  const Tensor rows = x.reshape({-1, b.in});
  stash.kept.push_back({rows, true});
  const Tensor turned = w.values[0].t();
  Tensor y = b.bias ? at::addmm(w.values[1], rows, turned) : at::mm(rows, turned);
  std::vector<int64_t> size = stash.size;
  if (size.back() != b.in) return y;
  size.back() = b.out;
  return y.view(size);
}

Tensor linear_input_grad(const TensorOp& op, const OpWeights& w, Tensor gradient, OpStash& stash,
                         Surroundings&) {
  stash.gradient = gradient.reshape({-1, op.build.out});
  return at::mm(stash.gradient, w.values[0]).view(stash.size);
}

void linear_weight_grad(const TensorOp& op, const OpWeights& w, OpStash& stash) {
  const Tensor rows =
      stash.gradient.reshape({-1, op.build.out});  // as I leaves them, if it has run
  accumulate(gradient_of(w, 0), at::mm(rows.t(), stash.kept[0].tensor));
  if (op.build.bias) accumulate(gradient_of(w, 1), rows.sum(0));
}

// --- attention: batch × sequence × 3·width → batch × sequence × width

// A slice attends to the earlier ones of its sequence, too.
Tensor behind_earlier(const std::vector<Tensor>& of_slices, std::size_t slice, const Tensor& own) {
  if (slice == 0) return own;
  std::vector<Tensor> all(of_slices.begin(),
                          of_slices.begin() + static_cast<std::ptrdiff_t>(slice));
  all.push_back(own);
  return at::cat(all, 1);
}

// Plain: the sequence × sequence probabilities of every head are written and kept. Scale and causal
// mask are part of the first product. Keys and values of earlier slices are joined for the product
// alone: each slice keeps its own.
Tensor attention_forward(const TensorOp& op, const OpWeights&, Tensor x, OpStash& stash,
                         Surroundings& around) {
  const int64_t batch = x.size(0);
  const int64_t places = x.size(1);
  const int64_t heads = op.build.heads;
  const int64_t width = x.size(2) / 3 / heads;
  const Tensor parts = x.view({batch, places, 3, heads, width}).permute({2, 0, 3, 1, 4});
  const auto part = [&](int64_t which) {
    return parts.select(0, which).reshape({batch * heads, places, width});
  };
  const Tensor q = part(0);
  const Tensor k = part(1);
  const Tensor v = part(2);
  Tensor all_k = k;
  Tensor all_v = v;
  if (SlicedAttention* const slices = around.slices) {
    all_k = behind_earlier(slices->keys, around.slice, k);
    all_v = behind_earlier(slices->values, around.slice, v);
    slices->keys.resize(around.slice);
    slices->keys.push_back(k);
    slices->values.resize(around.slice);
    slices->values.push_back(v);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const Tensor mask =
      op.buffers[0].narrow(0, around.begin, places).narrow(1, 0, around.begin + places);
  const Tensor scores = at::baddbmm(mask, q, all_k.transpose(1, 2), 1, scale);
  const Tensor chances = at::_softmax(scores, -1, false);
  stash.kept = {{q, false}, {k, false}, {v, false}, {chances, false}};
  stash.size = {batch, heads, places, width};
  return at::bmm(chances, all_v)
      .view({batch, heads, places, width})
      .transpose(1, 2)
      .reshape({batch, places, heads * width});
}

// The gradient at all keys (or values) that a slice attended to: the part of earlier slices waits
// for these; what later slices have left for its own is added to that.
Tensor own_gradient(const Tensor& all, const std::vector<Tensor>& keys, std::size_t slice,
                    std::vector<Tensor>& waiting) {
  waiting.resize(std::max(waiting.size(), slice + 1));
  int64_t begin = 0;
  for (std::size_t i = 0; i < slice; ++i) {
    const Tensor part = all.narrow(1, begin, keys[i].size(1));
    begin += keys[i].size(1);
    if (waiting[i].defined()) {
      waiting[i].add_(part);
    } else {
      waiting[i] = part.clone();
    }
  }
  const Tensor own = all.narrow(1, begin, all.size(1) - begin);
  const Tensor later = std::exchange(waiting[slice], {});
  return later.defined() ? own + later : own;
}

Tensor attention_input_grad(const TensorOp&, const OpWeights&, Tensor gradient, OpStash& stash,
                            Surroundings& around) {
  const int64_t batch = stash.size[0];
  const int64_t heads = stash.size[1];
  const int64_t places = stash.size[2];
  const int64_t width = stash.size[3];
  const auto kept = [&](std::size_t i) { return stash.kept[i].tensor; };
  const Tensor q = kept(0);
  SlicedAttention* const slices = around.slices;
  const Tensor k = slices ? behind_earlier(slices->keys, around.slice, kept(1)) : kept(1);
  const Tensor v = slices ? behind_earlier(slices->values, around.slice, kept(2)) : kept(2);
  const Tensor chances = kept(3);
  const Tensor g = gradient.view({batch, places, heads, width})
                       .transpose(1, 2)
                       .reshape({batch * heads, places, width});
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const Tensor scores =
      at::_softmax_backward_data(at::bmm(g, v.transpose(1, 2)), chances, -1, chances.scalar_type());
  Tensor result = at::empty({batch, places, 3, heads, width}, gradient.options());
  const Tensor parts = result.permute({2, 0, 3, 1, 4});
  const auto put = [&](int64_t which, const Tensor& part) {
    parts.select(0, which).copy_(part.reshape({batch, heads, places, width}));
  };
  put(0, at::bmm(scores, k).mul_(scale));
  const auto own = [&](Tensor all, std::vector<Tensor> SlicedAttention::*waiting) {
    return slices ? own_gradient(all, slices->keys, around.slice, slices->*waiting) : all;
  };
  put(1, own(at::bmm(q.transpose(1, 2), scores).transpose(1, 2).mul(scale),
             &SlicedAttention::key_gradients));
  put(2, own(at::bmm(chances.transpose(1, 2), g), &SlicedAttention::value_gradients));
  if (slices) {
    slices->keys.resize(around.slice);
    slices->values.resize(around.slice);
  }
  return result.view({batch, places, 3 * heads * width});
}

// --- embedding

// Token table, place table. x: batch × sequence of whole numbers below the first table's rows. A
// sequence may have fewer tokens than the second table has rows; a slice begins in its middle.
Sizes embedding_weights(const TensorOp& op) {
  return {{op.build.in, op.build.out}, {op.build.places, op.build.out}};
}

Tensor embedding_forward(const TensorOp&, const OpWeights& w, Tensor x, OpStash& stash,
                         Surroundings& around) {
  stash.kept.push_back({x, true});
  stash.size = {x.size(0), around.begin};
  return at::embedding(w.values[0], x).add_(w.values[1].narrow(0, around.begin, x.size(1)));
}

Tensor embedding_input_grad(const TensorOp&, const OpWeights&, Tensor gradient, OpStash& stash,
                            Surroundings&) {
  stash.gradient = std::move(gradient);
  return {};
}

void embedding_weight_grad(const TensorOp& op, const OpWeights& w, OpStash& stash) {
  accumulate(gradient_of(w, 0), at::embedding_dense_backward(stash.gradient, stash.kept[0].tensor,
                                                             op.build.in, -1, false));
  const Tensor of_places = stash.gradient.sum(0);
  Tensor& there = gradient_of(w, 1);
  if (of_places.size(0) == op.build.places) return accumulate(there, of_places);
  if (!there.defined()) there = at::zeros_like(w.values[1]);
  there.narrow(0, stash.size[1], of_places.size(0)).add_(of_places);
}

}  // namespace

const OpPasses conv_passes{conv_weights, conv_forward, conv_input_grad, conv_weight_grad,
                           conv_backward};
const OpPasses linear_passes{linear_weights, linear_forward, linear_input_grad, linear_weight_grad,
                             nullptr};
const OpPasses attention_passes{no_weights, attention_forward, attention_input_grad, nullptr,
                                nullptr};
const OpPasses embedding_passes{embedding_weights, embedding_forward, embedding_input_grad,
                                embedding_weight_grad, nullptr};

}  // namespace stageline::executor
