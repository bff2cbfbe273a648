// Residual nets: ResNet-18 and -50 for ImageNet, and those of depth 6n+2 for CIFAR-10.
//
//   basic block        x ──► conv1 ──► conv2 + add + relu ──►      the add is in the last
//                      └──────(downsample)───────┘                 convolution's layer
//
// Where the shape changes, ImageNet nets put a 1×1 convolution on the skip (its layer comes first
// in the block); CIFAR nets drop every second pixel and pad the channels with zeros (option A).
#include <utility>

#include "cost_models/shapes/primitives.hpp"

namespace stageline {
namespace {

struct Net {
  ModelShape model;
  Image at;      // the tensor that the next block reads
  int made = 0;  // the layer that made it

  // Appends a layer that reads the given layers' outputs, and returns its number.
  int append(LayerShape layer, const std::vector<int>& from) {
    const int number = static_cast<int>(model.layers.size());
    model.layers.push_back(std::move(layer));
    for (const int f : from) model.edges.push_back({f, number});
    return number;
  }
};

Net named_net(std::string name, Image input, std::string source) {
  Net net;
  net.model.name = std::move(name);
  net.model.sample = "image";
  net.model.input = input.elements();
  net.model.usual_optimizer = "momentum";
  net.model.source = std::move(source);
  net.at = input;
  return net;
}

void stem(Net& net, std::int64_t channels, Window window) {
  const Image out = through(net.at, window, channels);
  net.made = net.append(first_layer(conv_layer("conv1", net.at, out, window, {.norm = true})), {});
  net.at = out;
}

void head(Net& net, std::int64_t classes) {
  net.made = net.append(average_pool_layer("avgpool", net.at), {net.made});
  net.append(linear_layer("fc", net.at.channels, classes, After::loss), {net.made});
}

struct Step {
  std::int64_t channels;
  Window window;
};
enum class Shortcut : std::uint8_t { convolution, padding };

// One block: its convolutions in order; the skip joins at the last.
void block(Net& net, const std::string& name, const std::vector<Step>& steps, Shortcut shortcut) {
  const Image input = net.at;
  const int source = net.made;
  Image out = input;
  std::int64_t stride = 1;
  for (const Step& step : steps) {
    out = through(out, step.window, step.channels);
    stride *= step.window.stride;
  }
  int skip = source;
  const bool converted =
      shortcut == Shortcut::convolution && (stride != 1 || input.channels != out.channels);
  if (converted) {
    skip = net.append(
        conv_layer(name + ".downsample", input, out, {1, stride, 0}, {.norm = true, .relu = false}),
        {source});
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    const Image next = through(net.at, steps[i].window, steps[i].channels);
    Behind behind{.norm = true};
    if (last) behind.branching = input.elements();
    behind.owns_input = i > 0 || !converted;
    LayerShape layer =
        conv_layer(name + ".conv" + std::to_string(i + 1), net.at, next, steps[i].window, behind);
    net.made = net.append(std::move(layer),
                          last ? std::vector<int>{net.made, skip} : std::vector<int>{net.made});
    net.at = next;
  }
}

std::string block_name(std::size_t group, int number) {
  return "layer" + std::to_string(group + 1) + "." + std::to_string(number);
}

Net imagenet_start(std::string name) {
  Net net = named_net(std::move(name), {3, 224, 224}, "He et al., arXiv 1512.03385");
  net.model.usual_batch = 32;
  stem(net, 64, {7, 2, 3});
  const Image pooled = through(net.at, {3, 2, 1}, net.at.channels);
  net.made = net.append(max_pool_layer("maxpool", net.at, pooled, {3, 2, 1}), {net.made});
  net.at = pooled;
  return net;
}

ModelShape imagenet_end(Net net) {
  head(net, 1000);
  return finished(std::move(net.model));
}

// Three groups of n basic blocks of 16, 32 and 64 channels, or in that proportion.
ModelShape cifar(std::string name, int depth, const ShapeOptions& options) {
  const Widths width = widths(name, options, 16);
  Net net = named_net(std::move(name), {3, 32, 32}, "He et al., arXiv 1512.03385, section 4.2");
  net.model.usual_batch = 128;
  stem(net, width.of(16), {3, 1, 1});
  const std::vector<std::int64_t> channels = {width.of(16), width.of(32), width.of(64)};
  for (std::size_t g = 0; g < channels.size(); ++g) {
    for (int b = 0; b < (depth - 2) / 6; ++b) {
      const std::int64_t stride = g > 0 && b == 0 ? 2 : 1;
      block(net, block_name(g, b), {{channels[g], {3, stride, 1}}, {channels[g], {3, 1, 1}}},
            Shortcut::padding);
    }
  }
  head(net, 10);
  return finished(std::move(net.model));
}

}  // namespace

ModelShape resnet18(const ShapeOptions&) {
  Net net = imagenet_start("resnet18");
  const std::vector<std::int64_t> channels = {64, 128, 256, 512};
  for (std::size_t g = 0; g < channels.size(); ++g) {
    for (int b = 0; b < 2; ++b) {
      const std::int64_t stride = g > 0 && b == 0 ? 2 : 1;
      block(net, block_name(g, b), {{channels[g], {3, stride, 1}}, {channels[g], {3, 1, 1}}},
            Shortcut::convolution);
    }
  }
  return imagenet_end(std::move(net));
}

// With the stride on the 3×3 convolution ("v1.5"), as in torchvision.
ModelShape resnet50(const ShapeOptions&) {
  Net net = imagenet_start("resnet50");
  const std::vector<std::pair<std::int64_t, int>> groups = {{64, 3}, {128, 4}, {256, 6}, {512, 3}};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::int64_t width = groups[g].first;
    for (int b = 0; b < groups[g].second; ++b) {
      const std::int64_t stride = g > 0 && b == 0 ? 2 : 1;
      block(net, block_name(g, b),
            {{width, {1, 1, 0}}, {width, {3, stride, 1}}, {4 * width, {1, 1, 0}}},
            Shortcut::convolution);
    }
  }
  return imagenet_end(std::move(net));
}

ModelShape resnet20(const ShapeOptions& options) { return cifar("resnet20", 20, options); }
ModelShape resnet56(const ShapeOptions& options) { return cifar("resnet56", 56, options); }
ModelShape resnet110(const ShapeOptions& options) { return cifar("resnet110", 110, options); }
ModelShape resnet224(const ShapeOptions& options) { return cifar("resnet224", 224, options); }
ModelShape resnet362(const ShapeOptions& options) { return cifar("resnet362", 362, options); }

}  // namespace stageline
