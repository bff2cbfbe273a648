// Builds a model from its shapes and runs the passes of its layers.
#include "tools/executor/tensors/tensor_model.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;

Tensor random(const std::vector<int64_t>& size, at::Generator& generator, double scale,
              const at::TensorOptions& options) {
  // Drawn in single precision on the CPU, so that every device and format gets the same numbers.
  return at::randn(size, generator, at::TensorOptions(at::kFloat)).mul_(scale).to(options);
}

Tensor random_below(int64_t limit, const std::vector<int64_t>& size, at::Generator& generator,
                    const at::TensorOptions& options) {
  return at::randint(limit, size, generator, at::TensorOptions(at::kLong)).to(options.device());
}

// Products: of variance 2 / inputs. A norm begins as the identity; biases are 0.
std::vector<Tensor> initial_weights(const TensorOp& op, at::Generator& generator,
                                    const at::TensorOptions& options) {
  const auto sizes = op.passes->weights(op);
  std::vector<Tensor> weights;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].size() > 1) {
      double inputs = 1;
      for (std::size_t k = 1; k < sizes[i].size(); ++k) inputs *= static_cast<double>(sizes[i][k]);
      weights.push_back(random(sizes[i], generator, std::sqrt(2 / inputs), options));
    } else {
      const bool scale = i == 0;  // of a norm: it has no matrix before it
      weights.push_back(scale ? at::ones(sizes[i], options) : at::zeros(sizes[i], options));
    }
  }
  return weights;
}

// The weights of products, but not those of the first and of the last layer that has any: Muon is
// for hidden layers (Jordan et al. 2024), and leaves the others to AdamW.
void choose_matrices(TensorModel& model) {
  const std::vector<LayerShape>& layers = model.shape.layers;
  const auto has_weights = [](const LayerShape& layer) { return layer.weights > 0; };
  const auto first = std::find_if(layers.begin(), layers.end(), has_weights);
  const auto last = std::find_if(layers.rbegin(), layers.rend(), has_weights).base();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto here = layers.begin() + static_cast<std::ptrdiff_t>(i);
    const bool hidden = here > first && here + 1 < last;
    for (const Tensor& weight : model.weights[i].values) {
      model.weights[i].matrix.push_back(hidden && weight.dim() > 1);
    }
  }
}

void connect(TensorModel& model) {
  const std::size_t count = model.layers.size();
  if (model.shape.edges.empty()) {
    for (std::size_t i = 1; i < count; ++i) model.layers[i].input = static_cast<int>(i) - 1;
  }
  for (const LayerEdge& edge : model.shape.edges) {
    TensorLayer& to = nth(model.layers, edge.to);
    (to.input < 0 ? to.input : to.skip) = edge.from;
  }
  model.last_reader.assign(count, -1);
  for (std::size_t i = 0; i < count; ++i) {
    for (const int from : {model.layers[i].input, model.layers[i].skip}) {
      if (from >= 0) nth(model.last_reader, from) = static_cast<int>(i);
    }
  }
}

OpWeights weights_of(const TensorModel& model, std::size_t layer, std::size_t op,
                     std::vector<Tensor>* gradients) {
  const std::size_t first = model.layers[layer].first_weight[op];
  const std::size_t last = model.layers[layer].first_weight[op + 1];
  OpWeights weights;
  for (std::size_t i = first; i < last; ++i) {
    weights.values.push_back(model.weights[layer].values[i]);
  }
  weights.gradients = gradients;
  weights.first = first;
  return weights;
}

const Tensor& made_by(int layer, const MicroBatch& batch) {
  return layer < 0 ? batch.input : nth(batch.outputs, layer);
}

// Those that F and I have in common.
Surroundings surroundings_of(std::size_t layer, const MicroBatch& batch) {
  Surroundings around;
  around.purpose = batch.purpose;
  around.begin = batch.tokens.begin;
  if (batch.slices) {
    around.slices = &(*batch.slices)[layer];
    around.slice = batch.tokens.slice;
  }
  return around;
}

// Runs the ops of a layer. `stash` has a place for each of them.
void run_forward(const TensorModel& model, std::size_t layer, MicroBatch& batch,
                 std::vector<OpStash>& stash) {
  const TensorLayer& plan = model.layers[layer];
  Tensor x = made_by(plan.input, batch);
  Surroundings around = surroundings_of(layer, batch);
  around.skip = plan.skip < 0 ? x : made_by(plan.skip, batch);
  around.target = batch.target;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    x = plan.ops[i].passes->forward(plan.ops[i], weights_of(model, layer, i, nullptr), std::move(x),
                                    stash[i], around);
  }
  batch.outputs[layer] = std::move(x);
  for (const int from : {plan.input, plan.skip}) {
    if (from < 0) continue;
    const auto f = as_size(from);
    if (model.last_reader[f] == static_cast<int>(layer)) batch.outputs[f].reset();
  }
}

// Two layers read this tensor; the sum goes into the fresh part, which nobody else holds.
void join(Tensor& gradient, Tensor fresh) {
  gradient = gradient.defined() ? fresh.add_(gradient) : std::move(fresh);
}

Tensor gradient_at_output(const TensorModel& model, std::size_t layer, MicroBatch& batch) {
  Tensor gradient = std::exchange(batch.gradients[layer], {});
  return gradient.defined() ? gradient : at::full({}, batch.loss_weight, model.options);
}

// The gradient arrives at the layer's input and at what it added.
void hand_down(const TensorLayer& plan, MicroBatch& batch, Tensor gradient, Tensor skip) {
  if (plan.skip >= 0) {
    Tensor& there = nth(batch.gradients, plan.skip);
    there = there.defined() ? there.add(skip) : std::move(skip);
  } else if (skip.defined()) {
    gradient.add_(skip);
  }
  if (plan.input >= 0) {
    join(nth(batch.gradients, plan.input), std::move(gradient));
  }
}

void forget_what_only_input_grad_read(OpStash& stash) {
  for (KeptTensor& kept : stash.kept) {
    if (!kept.for_weight_grad) kept.tensor.reset();
  }
}

enum class Down : std::uint8_t { input, input_alone, both, weights };

// The first of the layer's ops that has weights; none: their number.
std::size_t lowest_with_weights(const TensorLayer& plan) {
  std::size_t op = 0;
  while (op < plan.ops.size() && plan.first_weight[op] == plan.first_weight[op + 1]) ++op;
  return op;
}

// Downwards through the ops from `gradient` at the layer's output. The gradients of the weights
// need none below the lowest op that has some.
void run_down(TensorModel& model, std::size_t layer, MicroBatch& batch, Down what) {
  const TensorLayer& plan = model.layers[layer];
  const bool reads_data = plan.input < 0;
  const bool with_weights = what == Down::both || what == Down::weights;
  const std::size_t end = what == Down::weights ? lowest_with_weights(plan) : 0;
  Tensor gradient = gradient_at_output(model, layer, batch);
  Surroundings around = surroundings_of(layer, batch);
  for (std::size_t i = plan.ops.size(); i-- > end;) {
    const TensorOp& op = plan.ops[i];
    OpStash& stash = batch.stash[layer][i];
    const OpWeights weights = weights_of(model, layer, i, &model.weights[layer].gradients);
    const bool needs_none = (reads_data && i == 0) || (what == Down::weights && i == end &&
                                                       op.passes->weight_grad != nullptr);
    if (needs_none) {
      stash.gradient = std::move(gradient);
    } else if (with_weights && op.passes->backward != nullptr) {
      gradient = op.passes->backward(op, weights, std::move(gradient), stash);
      stash = {};
      continue;
    } else {
      gradient = op.passes->input_grad(op, weights, std::move(gradient), stash, around);
    }
    if (with_weights && op.passes->weight_grad != nullptr) {
      op.passes->weight_grad(op, weights, stash);
    }
    if (what == Down::input) {
      forget_what_only_input_grad_read(stash);
    } else {
      stash = {};
    }
  }
  if (what == Down::weights) {
    for (std::size_t i = 0; i < end; ++i) batch.stash[layer][i] = {};
  } else if (!reads_data) {
    hand_down(plan, batch, std::move(gradient), std::move(around.skip_gradient));
  }
}

void run_weight_grads(TensorModel& model, std::size_t layer, MicroBatch& batch) {
  const TensorLayer& plan = model.layers[layer];
  for (std::size_t i = plan.ops.size(); i-- > 0;) {
    const TensorOp& op = plan.ops[i];
    OpStash& stash = batch.stash[layer][i];
    if (op.passes->weight_grad != nullptr) {
      op.passes->weight_grad(op, weights_of(model, layer, i, &model.weights[layer].gradients),
                             stash);
    }
    stash = {};
  }
}

}  // namespace

TensorModel tensor_model(const ModelShape& shape, Optimizer optimizer,
                         const at::TensorOptions& options, std::uint64_t seed,
                         const std::vector<bool>& wanted) {
  const c10::NoGradGuard plain;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  TensorModel model;
  model.shape = shape;
  model.optimizer = optimizer;
  model.options = options;
  for (const LayerShape& layer : shape.layers) {
    TensorLayer& made = model.layers.emplace_back();
    LayerWeights& weights = model.weights.emplace_back();
    made.ops = tensor_ops(layer, options);
    for (const TensorOp& op : made.ops) {
      made.first_weight.push_back(weights.values.size());
      const bool here = wanted.empty() || wanted[model.layers.size() - 1];
      for (Tensor& weight : initial_weights(op, generator, options)) {
        if (!here) continue;
        weight.set_requires_grad(true);
        weights.values.push_back(std::move(weight));
      }
    }
    made.first_weight.push_back(weights.values.size());
    weights.gradients.resize(weights.values.size());
  }
  choose_matrices(model);
  for (LayerWeights& weights : model.weights) begin_state(weights, optimizer);
  connect(model);
  return model;
}

std::int64_t most_tokens(const ModelShape& shape) {
  const LayerShape& first = shape.layers.front();
  return first.kind == "embedding" ? first.ops.front().build.places : 0;
}

MicroBatch random_micro_batch(const TensorModel& model, int batch, std::uint64_t seed,
                              std::int64_t tokens) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  MicroBatch made = empty_micro_batch(model);
  const LayerShape& first = model.shape.layers.front();
  const LayerShape& last = model.shape.layers.back();
  const Build& build = first.ops.front().build;
  if (first.kind == "embedding") {
    if (tokens == 0) tokens = build.places;
    made.tokens.count = tokens;
    made.input = random_below(build.in, {batch, tokens}, generator, model.options);
  } else {
    const auto side = std::llround(
        std::sqrt(static_cast<double>(model.shape.input) / static_cast<double>(build.in)));
    made.input = random({batch, build.in, side, side}, generator, 1, model.options);
  }
  const std::int64_t rows = tokens > 0 ? tokens : output_elements(last) / last.output.back();
  made.target = random_below(last.output.back(), {batch * rows}, generator, model.options);
  return made;
}

MicroBatch slice_of(const MicroBatch& batch, TokenRange tokens) {
  MicroBatch slice = batch;
  slice.tokens = tokens;
  slice.input = batch.input.narrow(1, tokens.begin, tokens.count).contiguous();
  slice.target =
      batch.target.view(batch.input.sizes()).narrow(1, tokens.begin, tokens.count).reshape({-1});
  return slice;
}

MicroBatch empty_micro_batch(const TensorModel& model) {
  const std::size_t layers = model.layers.size();
  MicroBatch made;
  made.outputs.resize(layers);
  made.gradients.resize(layers);
  made.stash.resize(layers);
  return made;
}

void forward(const TensorModel& model, std::size_t layer, MicroBatch& batch) {
  const c10::NoGradGuard plain;
  batch.stash[layer].assign(model.layers[layer].ops.size(), {});
  run_forward(model, layer, batch, batch.stash[layer]);
}

void input_grad(TensorModel& model, std::size_t layer, MicroBatch& batch) {
  const c10::NoGradGuard plain;
  if (model.layers[layer].input >= 0) run_down(model, layer, batch, Down::input);
}

void input_grad_alone(TensorModel& model, std::size_t layer, MicroBatch& batch) {
  const c10::NoGradGuard plain;
  if (model.layers[layer].input >= 0) run_down(model, layer, batch, Down::input_alone);
}

void weight_grad(TensorModel& model, std::size_t layer, MicroBatch& batch) {
  const c10::NoGradGuard plain;
  if (model.layers[layer].input < 0) {
    run_down(model, layer, batch, Down::both);
  } else {
    run_weight_grads(model, layer, batch);
  }
}

void backward(TensorModel& model, std::size_t layer, MicroBatch& batch) {
  const c10::NoGradGuard plain;
  run_down(model, layer, batch, Down::both);
}

void weight_grad_alone(TensorModel& model, std::size_t layer, MicroBatch& batch) {
  const c10::NoGradGuard plain;
  run_down(model, layer, batch, Down::weights);
}

bool is_by_sample(const TensorModel& model, std::size_t layer) {
  const std::vector<TensorOp>& ops = model.layers[layer].ops;
  return std::none_of(ops.begin(), ops.end(), keeps_statistics);
}

MicroBatch samples_of(const MicroBatch& batch, const std::vector<std::size_t>& layers,
                      std::int64_t all, std::int64_t first, std::int64_t count) {
  // A sequence has a row a place, an attention one a head. One number is of all samples.
  const auto part = [&](const Tensor& whole) {
    if (!whole.defined() || whole.dim() == 0) return whole;
    const std::int64_t rows = whole.size(0) / all;
    return whole.narrow(0, first * rows, count * rows);
  };
  MicroBatch some;
  some.outputs.resize(batch.outputs.size());
  some.gradients.resize(batch.gradients.size());
  some.stash.resize(batch.stash.size());
  some.loss_weight = batch.loss_weight;
  for (const std::size_t layer : layers) {
    some.gradients[layer] = part(batch.gradients[layer]);
    for (const OpStash& whole : batch.stash[layer]) {
      OpStash& here = some.stash[layer].emplace_back();
      for (const KeptTensor& kept : whole.kept) {
        here.kept.push_back({part(kept.tensor), kept.for_weight_grad});
      }
      here.size = whole.size;
      if (!here.size.empty()) here.size[0] = here.size[0] / all * count;
    }
  }
  return some;
}

void update(TensorModel& model, std::size_t layer, const OptimizerStep& step, NewWeights put) {
  update(model.weights[layer], model.optimizer, step, put);
}

void zero_gradients(LayerWeights& weights) {
  const c10::NoGradGuard plain;
  for (std::size_t i = 0; i < weights.values.size(); ++i) {
    if (weights.gradients[i].defined()) {
      weights.gradients[i].zero_();
    } else {
      weights.gradients[i] = at::zeros_like(weights.values[i]);
    }
  }
}

void zero_gradients(TensorModel& model) {
  for (LayerWeights& weights : model.weights) zero_gradients(weights);
}

Tensor whole_forward(const TensorModel& model, MicroBatch& batch) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    std::vector<OpStash> dropped(model.layers[i].ops.size());  // autograd keeps its own
    run_forward(model, i, batch, dropped);
  }
  return std::exchange(batch.outputs.back(), {});
}

void whole_backward(TensorModel& model, const Tensor& loss) {
  for (LayerWeights& weights : model.weights) {
    for (std::size_t i = 0; i < weights.values.size(); ++i) {
      weights.values[i].mutable_grad() = weights.gradients[i];
    }
  }
  loss.backward();
  for (LayerWeights& weights : model.weights) {
    for (std::size_t i = 0; i < weights.values.size(); ++i) {
      weights.gradients[i] = weights.values[i].grad();
    }
  }
}

}  // namespace stageline::executor
