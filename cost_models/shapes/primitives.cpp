#include "cost_models/shapes/primitives.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

// FLOPs an element of the ops that memory bounds on any device. The exact number never matters;
// that it is small does.
constexpr std::int64_t norm_forward_flops = 7;
constexpr std::int64_t norm_backward_flops = 11;
constexpr std::int64_t softmax_forward_flops = 5;
constexpr std::int64_t softmax_backward_flops = 4;
constexpr std::int64_t relu_flops = 1;
constexpr std::int64_t gelu_flops = 8;

// A product with weights: forward Y = X·K, I dX = dY·Kᵀ, W dK = Xᵀ·dY, equal in FLOPs.
Primitive weighted(PrimitiveKind kind, Build build, std::int64_t flops, std::int64_t in,
                   std::int64_t out, std::int64_t weights) {
  Primitive op;
  op.kind = kind;
  op.build = build;
  op.forward = {flops, in, out, weights, 0};
  op.input_grad = {flops, out, in, weights, 0};
  op.weight_grad = {flops, in + out, 0, 0, weights};
  op.weights = weights;
  return op;
}

Primitive weightless(PrimitiveKind kind, Work forward, Work input_grad) {
  Primitive op;
  op.kind = kind;
  op.forward = forward;
  op.input_grad = input_grad;
  return op;
}

// Backward reads dy and the saved input or output.
Primitive pointwise(PrimitiveKind kind, std::int64_t elements, std::int64_t flops_per_element) {
  const std::int64_t flops = flops_per_element * elements;
  return weightless(kind, {flops, elements, elements}, {flops, 2 * elements, elements});
}

std::int64_t slid(std::int64_t size, Window window) {
  return (size + 2 * window.padding - window.kernel) / window.stride + 1;
}

}  // namespace

Image through(Image in, Window window, std::int64_t channels) {
  return {channels, slid(in.height, window), slid(in.width, window)};
}

Primitive conv(Image in, Image out, Window window, bool bias) {
  const std::int64_t taps = in.channels * window.kernel * window.kernel;
  const Build build{.in = in.channels,
                    .out = out.channels,
                    .kernel = window.kernel,
                    .stride = window.stride,
                    .padding = window.padding,
                    .bias = bias};
  return weighted(PrimitiveKind::conv, build, 2 * out.elements() * taps, in.elements(),
                  out.elements(), taps * out.channels + (bias ? out.channels : 0));
}

Primitive linear(std::int64_t rows, std::int64_t in, std::int64_t out, bool bias) {
  const Build build{.in = in, .out = out, .bias = bias};
  return weighted(PrimitiveKind::linear, build, 2 * rows * in * out, rows * in, rows * out,
                  in * out + (bias ? out : 0));
}

// Backward is two products, one for each operand, and both are part of I.
Primitive matmul(std::int64_t count, std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  const std::int64_t flops = 2 * count * rows * inner * columns;
  const std::int64_t in = count * (rows * inner + inner * columns);
  const std::int64_t out = count * rows * columns;
  Primitive op = weightless(PrimitiveKind::matmul, {flops, in, out}, {2 * flops, 2 * out + in, in});
  op.build.heads = count;
  return op;
}

// Forward: x for the statistics, x again to normalize. Backward: x and dy for two sums, and again.
Primitive batch_norm(Image image) {
  const std::int64_t n = image.elements();
  const std::int64_t weights = 2 * image.channels;
  Primitive op = weightless(PrimitiveKind::batch_norm, {norm_forward_flops * n, 2 * n, n, weights},
                            {norm_backward_flops * n, 4 * n, n, weights, weights});
  op.weights = weights;
  op.build.in = image.channels;
  return op;
}

// A row fits on the chip: one read suffices.
Primitive layer_norm(std::int64_t rows, std::int64_t width) {
  const std::int64_t n = rows * width;
  const std::int64_t weights = 2 * width;
  Primitive op = weightless(PrimitiveKind::layer_norm, {norm_forward_flops * n, n, n, weights},
                            {norm_backward_flops * n, 2 * n, n, weights, weights});
  op.weights = weights;
  op.build.in = width;
  return op;
}

Primitive relu(std::int64_t elements) {
  return pointwise(PrimitiveKind::relu, elements, relu_flops);
}

Primitive gelu(std::int64_t elements) {
  return pointwise(PrimitiveKind::gelu, elements, gelu_flops);
}

// Backward, the sum's gradient goes both ways unchanged; where the branches part two are summed.
Primitive add(std::int64_t elements, std::int64_t branching) {
  return weightless(PrimitiveKind::add, {elements, 2 * elements, elements},
                    {branching, 2 * branching, branching});
}

// Backward reads dy and where the maximum stood.
Primitive max_pool(Image in, Image out, Window window) {
  Primitive op =
      weightless(PrimitiveKind::max_pool,
                 {out.elements() * window.kernel * window.kernel, in.elements(), out.elements()},
                 {out.elements(), 2 * out.elements(), in.elements()});
  op.build = {.kernel = window.kernel, .stride = window.stride, .padding = window.padding};
  return op;
}

Primitive average_pool(Image in, Image out) {
  return weightless(PrimitiveKind::average_pool, {in.elements(), in.elements(), out.elements()},
                    {in.elements(), out.elements(), in.elements()});
}

// Scale and mask are folded in.
Primitive softmax(std::int64_t elements) {
  return weightless(PrimitiveKind::softmax, {softmax_forward_flops * elements, elements, elements},
                    {softmax_backward_flops * elements, 2 * elements, elements});
}

// Looks up one row of a table for the token and one for its place, and adds them; backward fills a
// dense gradient of both tables.
Primitive embedding(std::int64_t rows, std::int64_t width, std::int64_t vocab,
                    std::int64_t places) {
  const std::int64_t table_rows = vocab + places;
  Primitive op;
  op.build = {.in = vocab, .out = width, .places = places};
  op.kind = PrimitiveKind::embedding;
  op.forward = {rows * width, 2 * rows * width, rows * width};
  op.weight_grad = {2 * rows * width, rows * width, 0, 0, table_rows * width};
  op.weights = table_rows * width;
  return op;
}

Primitive loss(std::int64_t elements) {
  return weightless(PrimitiveKind::loss, {softmax_forward_flops * elements, elements, elements},
                    {2 * elements, elements, elements});
}

// A mask is a byte an element, half an element of two bytes.
Primitive with_dropout(Primitive op, std::int64_t elements, bool fused) {
  const std::int64_t mask = (elements + 1) / 2;
  op.forward.flops += elements;
  op.forward.reads += fused ? 0 : elements;
  op.forward.writes += fused ? mask : elements + mask;
  op.input_grad.flops += elements;
  op.input_grad.reads += elements + mask;
  op.input_grad.writes += elements;
  return op;
}

LayerShape layer(std::string name, std::string kind, std::vector<Primitive> ops,
                 std::vector<std::int64_t> output, std::int64_t kept,
                 std::int64_t kept_for_weight_grad) {
  LayerShape shape;
  shape.name = std::move(name);
  shape.kind = std::move(kind);
  shape.ops = std::move(ops);
  shape.output = std::move(output);
  for (const Primitive& op : shape.ops) shape.weights += op.weights;
  shape.parameters = shape.weights;
  shape.stash_weight_grad = std::min(kept, kept_for_weight_grad);
  shape.stash_input_grad = kept - shape.stash_weight_grad;
  shape.stash_gradient = kept_for_weight_grad - shape.stash_weight_grad;
  return shape;
}

// Kept: the input, and what the batch norm reads. For W: the input and the convolution's output
// gradient. The ReLU's output is the next layer's input; an add needs nothing.
LayerShape conv_layer(std::string name, Image in, Image out, Window window, Behind behind) {
  std::vector<Primitive> ops = {conv(in, out, window, !behind.norm)};
  if (behind.norm) ops.push_back(batch_norm(out));
  if (behind.branching > 0) ops.push_back(add(out.elements(), behind.branching));
  if (behind.relu) ops.push_back(relu(out.elements()));
  const std::int64_t input = behind.owns_input ? in.elements() : 0;
  return layer(std::move(name), "conv", std::move(ops), {out.channels, out.height, out.width},
               input + (behind.norm ? out.elements() : 0), input + out.elements());
}

// Kept: the input (the ReLU before it reads it) and where each maximum stood.
LayerShape max_pool_layer(std::string name, Image in, Image out, Window window) {
  return layer(std::move(name), "pool", {max_pool(in, out, window)},
               {out.channels, out.height, out.width}, in.elements() + out.elements(), 0);
}

// Over the whole image. Kept: the input, for the ReLU before it.
LayerShape average_pool_layer(std::string name, Image in) {
  return layer(std::move(name), "pool", {average_pool(in, {in.channels})}, {in.channels},
               in.elements(), 0);
}

// Kept: the input, and what the loss reads; W needs the input and the output's gradient.
LayerShape linear_layer(std::string name, std::int64_t in, std::int64_t out, After after) {
  const bool last = after == After::loss;
  return layer(std::move(name), "linear", {linear(1, in, out, true), last ? loss(out) : relu(out)},
               {out}, in + (last ? out : 0), in + out);
}

LayerShape first_layer(LayerShape layer) {
  for (Primitive& op : layer.ops) {
    // The op that reads the data itself is the one with a weight gradient.
    if (op.weight_grad == Work{}) op.weight_grad = op.input_grad;
    op.input_grad = {};
  }
  layer.stash_weight_grad += std::exchange(layer.stash_input_grad, 0);
  layer.stash_gradient = output_elements(layer);
  return layer;
}

std::int64_t value(std::string_view model, const ShapeOptions& options, const ShapeKnob& knob) {
  const auto found = options.find(knob.name);
  const std::int64_t number = found == options.end() ? knob.fallback : found->second;
  if (number < 1 || number > knob.limit) {
    throw UsageError(
        fmt::format("{}: {} must be from 1 to {}, not {}", model, knob.name, knob.limit, number));
  }
  return number;
}

Widths widths(std::string_view model, const ShapeOptions& options, std::int64_t usual) {
  return {value(model, options, {"width", usual, 4096}), usual};
}

ModelShape finished(ModelShape model) {
  model.parameters = 0;
  for (const LayerShape& layer : model.layers) model.parameters += layer.parameters;
  return model;
}

}  // namespace stageline
