// Questions to the planner about random chains of layers.
#pragma once

#include <random>
#include <string>

#include "tools/planner/planner.hpp"
#include "traces/traces.hpp"

namespace stageline::test {

/// A chain of layers with times and bytes of one sample each.
inline std::string random_trace(std::mt19937& random, int layers) {
  const auto draw = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  Model model;
  model.name = "random";
  model.batch = 1;
  model.sample = "image";
  for (int l = 0; l < layers; ++l) {
    Layer& layer = model.layers.emplace_back();
    layer.name = "layer" + std::to_string(l);
    layer.forward = Time{1'000'000LL * draw(9)};
    layer.input_grad = l == 0 ? Time{} : Time{1'000'000LL * draw(9)};
    layer.weight_grad = Time{1'000'000LL * draw(9)};
    layer.backward = layer.input_grad + layer.weight_grad;
    layer.update = Time{100'000LL * draw(9)};
    layer.weights = Bytes{1000LL * draw(20)};
    layer.gradients = layer.weights;
    layer.optimizer_state = layer.weights * 2;
    layer.output = Bytes{1000LL * draw(9)};
    layer.stash_input_grad = Bytes{500LL * draw(9)};
    layer.stash_weight_grad = Bytes{1000LL * draw(20)};
    layer.backward_workspace = Bytes{300LL * draw(9)};
  }
  return write_trace({model});
}

/// On equal devices with links and 1 GB each.
inline planner::PlanRequest random_chain_request(std::mt19937& random, int layers, int devices,
                                                 int samples) {
  planner::PlanRequest request;
  request.setting.trace = random_trace(random, layers);
  request.setting.devices = {devices};
  request.setting.cluster.link = LinkSpec{Bandwidth{2'000'000'000}, Time{500'000}};
  request.setting.cluster.memory = Bytes{1'000'000'000};
  request.samples = samples;
  request.threads = 1;
  return request;
}

}  // namespace stageline::test
