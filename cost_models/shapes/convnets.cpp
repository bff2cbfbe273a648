// Plain chains of convolutions: LeNet-5, AlexNet, VGG.
#include <utility>

#include "cost_models/shapes/primitives.hpp"

namespace stageline {
namespace {

// A chain under construction, and the tensor at its end.
struct Chain {
  ModelShape model;
  Image at;

  void conv(std::string name, std::int64_t channels, Window window) {
    const Image out = through(at, window, channels);
    LayerShape layer = conv_layer(std::move(name), at, out, window, {});
    model.layers.push_back(model.layers.empty() ? first_layer(std::move(layer)) : layer);
    at = out;
  }
  void pool(std::string name, Window window) {
    const Image out = through(at, window, at.channels);
    model.layers.push_back(max_pool_layer(std::move(name), at, out, window));
    at = out;
  }
  void linear(std::string name, std::int64_t outputs, After after) {
    model.layers.push_back(linear_layer(std::move(name), at.elements(), outputs, after));
    at = {outputs};
  }
};

Chain start(std::string name, Image input, std::string source) {
  Chain chain;
  chain.model.name = std::move(name);
  chain.model.sample = "image";
  chain.model.input = input.elements();
  chain.model.usual_batch = 32;
  chain.model.usual_optimizer = "momentum";
  chain.model.source = std::move(source);
  chain.at = input;
  return chain;
}

// Groups of 3×3 convolutions, a pool behind each: {channels, how many}.
using Groups = std::vector<std::pair<std::int64_t, int>>;

Chain vgg(std::string name, Image input, const Groups& groups) {
  Chain net = start(std::move(name), input, "Simonyan and Zisserman, arXiv 1409.1556");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string number = std::to_string(g + 1);
    for (int i = 1; i <= groups[g].second; ++i) {
      net.conv("conv" + number + "_" + std::to_string(i), groups[g].first, {3, 1, 1});
    }
    net.pool("pool" + number, {2, 2, 0});
  }
  return net;
}

// Three linear layers, and whole.
ModelShape classified(Chain net, std::int64_t hidden, std::int64_t classes) {
  net.linear("fc1", hidden, After::relu);
  net.linear("fc2", hidden, After::relu);
  net.linear("fc3", classes, After::loss);
  return finished(std::move(net.model));
}

ModelShape imagenet_vgg(std::string name, const Groups& groups) {
  return classified(vgg(std::move(name), {3, 224, 224}, groups), 4096, 1000);
}

Groups vgg16_groups() { return {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}; }

}  // namespace

// With ReLU and max pools, as trained today, on 32×32 images.
ModelShape lenet5(const ShapeOptions& options) {
  const Widths width = widths("lenet5", options, 6);
  Chain net = start("lenet5", {1, 32, 32}, "LeCun et al. 1998, doi 10.1109/5.726791");
  net.conv("conv1", width.of(6), {5, 1, 0});
  net.pool("pool1", {2, 2, 0});
  net.conv("conv2", width.of(16), {5, 1, 0});
  net.pool("pool2", {2, 2, 0});
  net.linear("fc1", width.of(120), After::relu);
  net.linear("fc2", width.of(84), After::relu);
  net.linear("fc3", 10, After::loss);
  return finished(std::move(net.model));
}

// The one-tower form.
ModelShape alexnet(const ShapeOptions&) {
  Chain net = start("alexnet", {3, 224, 224}, "Krizhevsky, arXiv 1404.5997");
  net.conv("conv1", 64, {11, 4, 2});
  net.pool("pool1", {3, 2, 0});
  net.conv("conv2", 192, {5, 1, 2});
  net.pool("pool2", {3, 2, 0});
  net.conv("conv3", 384, {3, 1, 1});
  net.conv("conv4", 256, {3, 1, 1});
  net.conv("conv5", 256, {3, 1, 1});
  net.pool("pool5", {3, 2, 0});
  return classified(std::move(net), 4096, 1000);
}

// The one-tower form for 32×32 images: the first convolution takes every second pixel, the others
// are 3×3, the pools 2×2.
ModelShape alexnet_cifar(const ShapeOptions& options) {
  const Widths width = widths("alexnet_cifar", options, 64);
  Chain net = start("alexnet_cifar", {3, 32, 32}, "Krizhevsky, arXiv 1404.5997");
  net.model.usual_batch = 128;
  net.model.notes = {
      "rebuilt from the memory table of arXiv 1912.12675, which does not print the layers: the "
      "common form of the one-tower net for 32x32 images, with its 11x11 first convolution; 88.86 "
      "MB of weights in fp32, printed are 88.87"};
  net.conv("conv1", width.of(64), {11, 2, 5});
  net.pool("pool1", {2, 2, 0});
  net.conv("conv2", width.of(192), {3, 1, 1});
  net.pool("pool2", {2, 2, 0});
  net.conv("conv3", width.of(384), {3, 1, 1});
  net.conv("conv4", width.of(256), {3, 1, 1});
  net.conv("conv5", width.of(256), {3, 1, 1});
  net.pool("pool5", {2, 2, 0});
  return classified(std::move(net), width.of(4096), 10);
}

ModelShape vgg11(const ShapeOptions&) {
  return imagenet_vgg("vgg11", {{64, 1}, {128, 1}, {256, 2}, {512, 2}, {512, 2}});
}
ModelShape vgg16(const ShapeOptions&) { return imagenet_vgg("vgg16", vgg16_groups()); }

// The same convolutions on 32×32 images, of which the pools leave 1×1.
ModelShape vgg16_cifar(const ShapeOptions& options) {
  const Widths width = widths("vgg16_cifar", options, 64);
  Groups groups = vgg16_groups();
  for (auto& group : groups) group.first = width.of(group.first);
  Chain net = vgg("vgg16_cifar", {3, 32, 32}, groups);
  net.model.usual_batch = 128;
  net.model.notes = {
      "rebuilt from the memory table of arXiv 1912.12675, which does not print the layers: linear "
      "layers of 512, 512 and 10, biases and no batch norm give its 58.16 MB of weights in fp32 "
      "(58.17 with batch norm)"};
  return classified(std::move(net), width.of(512), 10);
}

}  // namespace stageline
