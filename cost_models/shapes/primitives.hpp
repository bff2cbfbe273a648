// The bricks that the models are built of. For the files of this folder only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/shapes/shapes.hpp"

namespace stageline {

/// A tensor of channels × height × width; one of channels only has height and width 1.
struct Image {
  std::int64_t channels = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;

  std::int64_t elements() const { return channels * height * width; }
};

/// What a square window makes of an image.
struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};
Image through(Image in, Window window, std::int64_t channels);

Primitive conv(Image in, Image out, Window window, bool bias);
Primitive linear(std::int64_t rows, std::int64_t in, std::int64_t out, bool bias);
/// `count` products of (rows × inner) by (inner × columns).
Primitive matmul(std::int64_t count, std::int64_t rows, std::int64_t inner, std::int64_t columns);
Primitive batch_norm(Image image);
Primitive layer_norm(std::int64_t rows, std::int64_t width);
Primitive relu(std::int64_t elements);
Primitive gelu(std::int64_t elements);
/// `branching`: elements of the tensor that is read by both branches.
Primitive add(std::int64_t elements, std::int64_t branching);
Primitive max_pool(Image in, Image out, Window window);
Primitive average_pool(Image in, Image out);
Primitive softmax(std::int64_t elements);
/// `rows` look-ups in a table of `vocab` tokens and one of `places`.
Primitive embedding(std::int64_t rows, std::int64_t width, std::int64_t vocab, std::int64_t places);
Primitive loss(std::int64_t elements);
/// The op and a dropout of its output. `fused`: the op's own kernel drops, and adds a mask alone to
/// the forward's traffic.
Primitive with_dropout(Primitive op, std::int64_t elements, bool fused);

/// The ops that follow a convolution.
struct Behind {
  bool norm = false;
  bool relu = true;
  std::int64_t branching = 0;  // elements of the tensor where a skip began; 0: no add
  bool owns_input = true;      // no layer before it keeps the same input
};
LayerShape conv_layer(std::string name, Image in, Image out, Window window, Behind behind);
LayerShape max_pool_layer(std::string name, Image in, Image out, Window window);
LayerShape average_pool_layer(std::string name, Image in);
enum class After : std::uint8_t { relu, loss };
LayerShape linear_layer(std::string name, std::int64_t in, std::int64_t out, After after);

/// A layer of these ops; `kept` is the whole stash, `kept_for_weight_grad` what W needs, which may
/// be more: gradients that I leaves.
LayerShape layer(std::string name, std::string kind, std::vector<Primitive> ops,
                 std::vector<std::int64_t> output, std::int64_t kept,
                 std::int64_t kept_for_weight_grad);

/// The same layer where its input needs no gradient: what is left of its backward is all W.
LayerShape first_layer(LayerShape layer);

/// Fills in what follows from the layers.
ModelShape finished(ModelShape model);

/// A number that a model's user may set.
struct ShapeKnob {
  const char* name;
  std::int64_t fallback;
  std::int64_t limit;  // keeps every product within 64 bits
};
/// Throws UsageError unless it is from 1 to the limit.
std::int64_t value(std::string_view model, const ShapeOptions& options, const ShapeKnob& knob);

/// Channels and features in proportion to those of the first convolution, which the option `width`
/// sets.
struct Widths {
  std::int64_t first = 1;
  std::int64_t usual = 1;

  /// What `channels` of the usual model become here, rounded up.
  std::int64_t of(std::int64_t channels) const { return (channels * first + usual - 1) / usual; }
};
Widths widths(std::string_view model, const ShapeOptions& options, std::int64_t usual);

// The families, by the name in the catalogue.
ModelShape lenet5(const ShapeOptions& options);
ModelShape alexnet(const ShapeOptions& options);
ModelShape vgg11(const ShapeOptions& options);
ModelShape vgg16(const ShapeOptions& options);
ModelShape resnet18(const ShapeOptions& options);
ModelShape resnet50(const ShapeOptions& options);
ModelShape alexnet_cifar(const ShapeOptions& options);
ModelShape vgg16_cifar(const ShapeOptions& options);
ModelShape resnet20(const ShapeOptions& options);
ModelShape resnet56(const ShapeOptions& options);
ModelShape resnet110(const ShapeOptions& options);
ModelShape resnet224(const ShapeOptions& options);
ModelShape resnet362(const ShapeOptions& options);
ModelShape gpt(const ShapeOptions& options, const TrainingForm& form);

}  // namespace stageline
