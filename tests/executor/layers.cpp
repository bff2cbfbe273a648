// Do the explicit passes give autograd's gradients, and are the tensors what the table of shapes
// says?
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <map>
#include <string>
#include <vector>

#include "cost_models/shapes/shapes.hpp"
#include "sim/base/errors.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {
namespace {

using Gradients = std::vector<std::vector<at::Tensor>>;

// Small stand-ins where the usual size would take seconds: every kind of op and of skip is there.
struct Sample {
  std::string name;
  ShapeOptions options;
};
const std::vector<Sample> samples = {
    {"lenet5", {}},
    {"resnet20", {}},
    {"resnet18", {}},
    {"alexnet", {}},
    {"gpt", {{"layers", 2}, {"hidden", 64}, {"heads", 4}, {"seq", 16}, {"vocab", 50}}}};

TensorModel small(const Sample& sample, Optimizer optimizer, at::ScalarType type,
                  at::Device device = at::kCPU) {
  return tensor_model(model_shape(sample.name, sample.options), optimizer,
                      at::TensorOptions(type).device(device), 7);
}

Gradients taken(const TensorModel& model) {
  Gradients all;
  for (const LayerWeights& weights : model.weights) {
    std::vector<at::Tensor>& layer = all.emplace_back();
    for (const at::Tensor& gradient : weights.gradients) layer.push_back(gradient.clone());
  }
  return all;
}

// The running statistics of batch norms do not enter the gradients of a training step, so the same
// model can run again and again.
Gradients by_autograd(TensorModel& model, MicroBatch batch) {
  zero_gradients(model);
  whole_backward(model, whole_forward(model, batch));
  return taken(model);
}

Gradients split(TensorModel& model, MicroBatch batch, bool weights_last) {
  zero_gradients(model);
  const std::size_t count = model.layers.size();
  for (std::size_t i = 0; i < count; ++i) forward(model, i, batch);
  for (std::size_t i = count; i-- > 0;) {
    input_grad(model, i, batch);
    if (!weights_last) weight_grad(model, i, batch);
  }
  if (weights_last) {
    for (std::size_t i = 0; i < count; ++i) weight_grad(model, i, batch);
  }
  return taken(model);
}

Gradients fused(TensorModel& model, MicroBatch batch) {
  zero_gradients(model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) forward(model, i, batch);
  for (std::size_t i = model.layers.size(); i-- > 0;) backward(model, i, batch);
  return taken(model);
}

void check_equal(const Gradients& ours, const Gradients& autograd, const TensorModel& model) {
  REQUIRE(ours.size() == autograd.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CAPTURE(model.shape.layers[i].name);
    for (std::size_t k = 0; k < ours[i].size(); ++k) {
      CAPTURE(k);
      CHECK(at::equal(ours[i][k], autograd[i][k]));
    }
  }
}

double largest(const Gradients& gradients) {
  double most = 0;
  for (const auto& layer : gradients) {
    for (const at::Tensor& g : layer) most = std::max(most, g.abs().max().item<double>());
  }
  return most;
}

}  // namespace

TEST_CASE("split and fused backward equal autograd's to the last bit in double precision") {
  for (const Sample& sample : samples) {
    CAPTURE(sample.name);
    TensorModel model = small(sample, Optimizer::sgd, at::kDouble);
    const MicroBatch batch = random_micro_batch(model, 2, 3);
    const Gradients autograd = by_autograd(model, batch);
    CHECK(largest(autograd) > 0);
    check_equal(split(model, batch, false), autograd, model);
    check_equal(split(model, batch, true), autograd, model);
    check_equal(fused(model, batch), autograd, model);
  }
}

TEST_CASE("W by itself gives the same gradients, from what I leaves at the layer's output") {
  for (const Sample& sample : samples) {
    CAPTURE(sample.name);
    TensorModel model = small(sample, Optimizer::sgd, at::kDouble);
    MicroBatch batch = random_micro_batch(model, 2, 3);
    const Gradients autograd = by_autograd(model, batch);
    zero_gradients(model);
    const std::size_t count = model.layers.size();
    for (std::size_t i = 0; i < count; ++i) forward(model, i, batch);
    for (std::size_t i = count; i-- > 0;) {
      MicroBatch elsewhere = batch;  // where I is
      weight_grad_alone(model, i, batch);
      const Gradients made = taken(model);
      for (const OpStash& left : batch.stash[i]) CHECK(left.kept.empty());
      input_grad(model, i, elsewhere);  // norms add their weights' gradients here, a second time
      batch = std::move(elsewhere);
      for (std::size_t k = 0; k < made[i].size(); ++k) model.weights[i].gradients[k] = made[i][k];
    }
    check_equal(taken(model), autograd, model);
  }
}

TEST_CASE("I of some samples is that of all, where no op looks at the others") {
  for (const Sample& sample : samples) {
    CAPTURE(sample.name);
    TensorModel model = small(sample, Optimizer::sgd, at::kDouble);
    constexpr std::int64_t all = 5;
    MicroBatch batch = random_micro_batch(model, all, 3);
    zero_gradients(model);
    const std::size_t count = model.layers.size();
    for (std::size_t i = 0; i < count; ++i) forward(model, i, batch);
    int divided = 0;
    for (std::size_t i = count; i-- > 1;) {
      const auto below = static_cast<std::size_t>(model.layers[i].input);
      std::vector<at::Tensor> parts;
      if (is_by_sample(model, i) && !batch.gradients[below].defined()) {
        for (const auto& [first, number] : {std::pair(0, 2), std::pair(2, 3)}) {
          MicroBatch part = samples_of(batch, {i}, all, first, number);
          input_grad(model, i, part);
          parts.push_back(part.gradients[below]);
        }
      }
      input_grad(model, i, batch);
      if (parts.empty()) continue;
      ++divided;
      CAPTURE(model.shape.layers[i].name);
      CHECK(at::allclose(at::cat(parts), batch.gradients[below], 1e-9, 1e-12));
    }
    CHECK(divided > 0);
    CHECK(is_by_sample(model, count - 1));
  }
  TensorModel model = small(samples[1], Optimizer::sgd, at::kDouble);
  CHECK(!is_by_sample(model, 0));
}

TEST_CASE("on an accelerator they equal autograd's within rounding") {
  try {
    device_called("cuda");
  } catch (const UsageError& error) {
    MESSAGE("skipped: " << std::string(error.what()));
    return;
  }
  for (const Sample& sample : samples) {
    CAPTURE(sample.name);
    TensorModel model = small(sample, Optimizer::sgd, at::kDouble, device_called("cuda"));
    const MicroBatch batch = random_micro_batch(model, 2, 3);
    const Gradients autograd = by_autograd(model, batch);
    for (const Gradients& ours : {split(model, batch, true), fused(model, batch)}) {
      for (std::size_t i = 0; i < ours.size(); ++i) {
        CAPTURE(model.shape.layers[i].name);
        for (std::size_t k = 0; k < ours[i].size(); ++k) {
          CHECK(at::allclose(ours[i][k], autograd[i][k], 1e-9, 1e-12));
        }
      }
    }
  }
}

TEST_CASE("a second micro-batch adds to the gradients of the first") {
  TensorModel model = small(samples[1], Optimizer::sgd, at::kDouble);
  const MicroBatch one = random_micro_batch(model, 2, 3);
  const MicroBatch two = random_micro_batch(model, 2, 4);
  const Gradients first = split(model, one, true);
  const Gradients second = split(model, two, true);
  zero_gradients(model);
  for (MicroBatch batch : {one, two}) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) forward(model, i, batch);
    for (std::size_t i = model.layers.size(); i-- > 0;) backward(model, i, batch);
  }
  const Gradients both = taken(model);
  for (std::size_t i = 0; i < both.size(); ++i) {
    CAPTURE(model.shape.layers[i].name);
    for (std::size_t k = 0; k < both[i].size(); ++k) {
      CHECK(at::equal(both[i][k], first[i][k] + second[i][k]));
      CHECK_FALSE(at::equal(both[i][k], first[i][k]));
    }
  }
}

TEST_CASE("layers hold as many weights and put out as much as the table of shapes says") {
  std::vector<Sample> all;
  for (const std::string& name : model_names()) {
    if (name != "gpt") all.push_back({name, {}});
  }
  all.push_back(samples.back());
  for (const Sample& sample : all) {
    CAPTURE(sample.name);
    TensorModel model = small(sample, Optimizer::sgd, at::kFloat);
    const int batch = 2;
    const std::vector<LayerBytes> bytes = count_bytes(model, random_micro_batch(model, batch, 1));
    REQUIRE(bytes.size() == model.shape.layers.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const LayerShape& shape = model.shape.layers[i];
      CAPTURE(shape.name);
      std::int64_t weights = 0;
      for (const at::Tensor& weight : model.weights[i].values) weights += weight.numel();
      CHECK(weights == shape.weights);
      std::vector<std::int64_t> output = shape.output;
      if (shape.ops.back().kind == PrimitiveKind::loss && output.size() == 2) {
        output = {batch * output[0], output[1]};  // a row for each place of each sequence
      } else {
        output.insert(output.begin(), batch);
      }
      CHECK(bytes[i].output == output);
      CHECK(bytes[i].output_bytes.count == 4 * batch * output_elements(shape));
    }
  }
}

TEST_CASE("layers keep what the table of shapes says, and a little that it leaves out") {
  for (const Sample& sample : samples) {
    CAPTURE(sample.name);
    TensorModel model = small(sample, Optimizer::sgd, at::kFloat);
    const std::int64_t batch = 4;
    const std::vector<LayerBytes> bytes =
        count_bytes(model, random_micro_batch(model, static_cast<int>(batch), 1));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const LayerShape& shape = model.shape.layers[i];
      CAPTURE(shape.name);
      // Batch norm's statistics and the loss's targets are left out; a pool keeps its places in
      // 8 bytes; tokens are 8 bytes too.
      const std::int64_t slack = 8 * shape.output[0] + 8 * batch * 64 + 64;
      const bool pool = shape.ops[0].kind == PrimitiveKind::max_pool;
      const std::int64_t for_input =
          4 * batch * (shape.stash_input_grad + (pool ? output_elements(shape) : 0));
      const std::int64_t for_weight =
          4 * batch * shape.stash_weight_grad * (shape.kind == "embedding" ? 2 : 1);
      CHECK(bytes[i].stash_input_grad.count >= for_input);
      CHECK(bytes[i].stash_input_grad.count <= for_input + slack);
      CHECK(bytes[i].stash_weight_grad.count >= for_weight);
      CHECK(bytes[i].stash_weight_grad.count <= for_weight + slack);
      CHECK(bytes[i].stash_gradient.count == 4 * batch * shape.stash_gradient);
    }
  }
}

TEST_CASE("the optimizer's step is PyTorch's") {
  const std::map<std::string, Optimizer> optimizers = {
      {"sgd", Optimizer::sgd}, {"momentum", Optimizer::momentum}, {"adam", Optimizer::adam}};
  for (const auto& [name, optimizer] : optimizers) {
    for (const OptimizerStep& numbers :
         {OptimizerStep{0.01}, OptimizerStep{0.02, 0.5}, OptimizerStep{0.01, 0.9, 0.05}}) {
      CAPTURE(name);
      CAPTURE(numbers.momentum);
      CAPTURE(numbers.weight_decay);
      TensorModel ours = small(samples[0], optimizer, at::kDouble);
      TensorModel theirs = small(samples[0], optimizer, at::kDouble);
      std::vector<at::Tensor> parameters;
      for (const LayerWeights& weights : theirs.weights) {
        parameters.insert(parameters.end(), weights.values.begin(), weights.values.end());
      }
      const bool velocity = optimizer == Optimizer::momentum;
      torch::optim::SGD sgd(parameters, torch::optim::SGDOptions(numbers.rate)
                                            .momentum(velocity ? numbers.momentum : 0)
                                            .weight_decay(numbers.weight_decay));
      torch::optim::Adam adam(
          parameters, torch::optim::AdamOptions(numbers.rate).weight_decay(numbers.weight_decay));
      for (int step = 0; step < 3; ++step) {
        for (TensorModel* model : {&ours, &theirs}) {
          by_autograd(*model, random_micro_batch(*model, 2, static_cast<std::uint64_t>(step)));
        }
        for (std::size_t i = 0; i < ours.layers.size(); ++i) update(ours, i, numbers);
        if (optimizer == Optimizer::adam) {
          adam.step();
        } else {
          sgd.step();
        }
      }
      for (std::size_t i = 0; i < ours.weights.size(); ++i) {
        CAPTURE(ours.shape.layers[i].name);
        for (std::size_t k = 0; k < ours.weights[i].values.size(); ++k) {
          CHECK(at::equal(ours.weights[i].values[k], theirs.weights[i].values[k]));
        }
      }
    }
  }
}

}  // namespace stageline::executor
