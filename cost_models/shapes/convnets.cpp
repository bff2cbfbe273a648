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
ModelShape vgg(std::string name, const std::vector<std::pair<std::int64_t, int>>& groups) {
  Chain net = start(std::move(name), {3, 224, 224}, "Simonyan and Zisserman, arXiv 1409.1556");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string number = std::to_string(g + 1);
    for (int i = 1; i <= groups[g].second; ++i) {
      net.conv("conv" + number + "_" + std::to_string(i), groups[g].first, {3, 1, 1});
    }
    net.pool("pool" + number, {2, 2, 0});
  }
  net.linear("fc1", 4096, After::relu);
  net.linear("fc2", 4096, After::relu);
  net.linear("fc3", 1000, After::loss);
  return finished(std::move(net.model));
}

}  // namespace

// With ReLU and max pools, as trained today, on 32×32 images.
ModelShape lenet5(const ShapeOptions&) {
  Chain net = start("lenet5", {1, 32, 32}, "LeCun et al. 1998, doi 10.1109/5.726791");
  net.conv("conv1", 6, {5, 1, 0});
  net.pool("pool1", {2, 2, 0});
  net.conv("conv2", 16, {5, 1, 0});
  net.pool("pool2", {2, 2, 0});
  net.linear("fc1", 120, After::relu);
  net.linear("fc2", 84, After::relu);
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
  net.linear("fc1", 4096, After::relu);
  net.linear("fc2", 4096, After::relu);
  net.linear("fc3", 1000, After::loss);
  return finished(std::move(net.model));
}

ModelShape vgg11(const ShapeOptions&) {
  return vgg("vgg11", {{64, 1}, {128, 1}, {256, 2}, {512, 2}, {512, 2}});
}
ModelShape vgg16(const ShapeOptions&) {
  return vgg("vgg16", {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}});
}

}  // namespace stageline
