#include "cost_models/state_bytes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cost_models/tied_weights.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Adam's moments take 8 bytes, a master copy of the weights 4, and a copy of the gradients in fp32
// that the optimizer works on, where they are accumulated in fp16, 4.
// Megatron-LM's precision-aware optimizer keeps of the master copy the 16 bits that bf16 weights
// lack (store_param_remainders, its default), but all 32 where the weights are no bf16.
constexpr std::array<PrecisionRecipe, 15> recipes{{
    {{"fp32", 4, 4, 8},
     "Megatron-LM, docs/source/api-guide/dist_optimizer.md: fp32 parameters and gradients, 16 "
     "bytes"},
    {{"bf16", 2, 4, 12},
     "Megatron-LM, the same table: 16-bit parameters, fp32 gradients, 18 bytes"},
    {{"fp16", 2, 2, 16},
     "Megatron-LM, the same table: fp16 parameters and gradients, 20 bytes, of which 16 are "
     "divided"},
    {{"mixed", 2, 2, 12}, "ZeRO, arXiv 1910.02054, section 3.1: fp16 with Adam, 16 bytes"},
    {{"fp8", 2, 4, 12},
     "Transformer Engine, fp8_model_init: a weight is kept in FP8 and, for Hopper's products, "
     "transposed once more; gradients and optimizer as bf16"},
    {{"fp8-current", 2, 4, 12},
     "Megatron-LM, --fp8-recipe tensorwise --fp8-param-gather: as fp8, gathered in 8 bits (its "
     "low-precision training guide, read 2026-11-29)",
     1},
    {{"fp8-delayed", 2, 4, 12},
     "Megatron-LM, --fp8-recipe delayed --fp8-param-gather: as fp8, gathered in 8 bits",
     1},
    {{"fp8-block", 4, 4, 12},
     "Megatron-Bridge, bf16_with_fp8_subchannel_scaling_mixed: weights in bf16, and quantized by "
     "rows and by columns beside them",
     2},
    {{"mxfp8", 2 * (1 + 1.0 / 32), 4, 12},
     "Megatron-LM, --fp8-recipe mxfp8 --fp8-param-gather --reuse-grad-buf-for-mxfp8-param-ag: "
     "quantized by rows and by columns, a scale for 32 elements, gathered in bf16",
     2},
    {{"nvfp4", 2 + 2 * (0.5 + 1.0 / 16), 4, 12},
     "Megatron-Bridge, --fp4-recipe nvfp4: weights in bf16, and quantized by rows and by columns "
     "beside them, a scale for 16 elements",
     2},
    {{"fp8-mixed", 2, 2, 12},
     "Megatron-Bridge, scripts/performance (read 2026-11-29): as fp8-current, gradients in bf16",
     1},
    {{"bf16-moments", 2, 4, 6},
     "Megatron-LM, --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"},
    {{"precision-aware", 2, 2, 6}, "Megatron-LM, the same with --main-grads-dtype bf16"},
    {{"precision-aware-fp8", 2, 2, 4},
     "Megatron-LM, --use-precision-aware-optimizer --main-grads-dtype bf16 --exp-avg-dtype fp8 "
     "--exp-avg-sq-dtype fp8, the least of its guide"},
    {{"mxfp8-precision-aware", 2 * (1 + 1.0 / 32), 2, 8},
     "Megatron-LM, mxfp8 with moments and gradients in bf16",
     2},
}};

[[noreturn]] void too_large(std::int64_t parameters) {
  throw UsageError(
      fmt::format("the state of {} parameters takes more than 2^62 bytes, the most that is counted",
                  parameters));
}

Bytes bytes_of(std::int64_t parameters, double each) {
  const double bytes = std::ceil(static_cast<double>(parameters) * each);
  if (!(bytes <= static_cast<double>(most_bytes_held.count))) too_large(parameters);
  return {std::llround(bytes)};
}

std::int64_t part_of(std::int64_t whole, bool divided, int ranks) {
  if (!divided) return whole;
  return whole / ranks + (whole % ranks > 0 ? 1 : 0);
}

struct Divided {
  bool optimizer = false;
  bool gradients = false;
  bool weights = false;
};

Divided divided_by(Zero zero) {
  switch (zero) {
    case Zero::none:
      return {};
    case Zero::optimizer:
      return {true, false, false};
    case Zero::gradients:
      return {true, true, false};
    case Zero::weights:
      return {true, true, true};
  }
  return {};  // unreachable; g++ wants it
}

// With those of another layer, which are counted there.
std::int64_t held_parameters(const Layer& layer, double each) {
  if (each == 0) return layer.parameters;
  const Bytes uncounted = layer.parameters > 0 ? layer.tied_weights : layer.weights;
  return layer.parameters + std::llround(static_cast<double>(uncounted.count) / each);
}

// The parameters of experts among those that the layer holds.
std::int64_t held_experts(const Layer& layer, std::int64_t held) {
  return std::clamp(layer.expert_parameters, std::int64_t{0}, held);
}

bool is_frozen(const Model& model, std::size_t layer) {
  return model.encoder.frozen && layer < as_size(model.encoder.count);
}

// The undivided state of every layer.
std::vector<StateBytes> whole_states(const Model& model, const Precision& precision) {
  std::vector<StateBytes> states;
  const bool as_stated = precision.name.empty();
  const double each = as_stated ? 0 : bytes_per_parameter(model);
  for (const Layer& layer : model.layers) {
    if (as_stated) {
      states.push_back({layer.weights, layer.gradients, layer.optimizer_state});
    } else if (each > 0) {
      states.push_back(state_bytes(held_parameters(layer, each), precision, Zero::none, 1));
    } else {
      throw UsageError(fmt::format(
          "precision {} counts bytes a parameter, and no layer of \"{}\" states its parameters; take "
          "a trace that does, or leave the precision out",
          precision.name, model.name));
    }
    if (is_frozen(model, states.size() - 1)) states.back() = {states.back().weights, {}, {}};
  }
  return states;
}

// The part of a rank, where weights of experts are divided among fewer ranks.
StateBytes part_of_state(const Layer& layer, const StateBytes& whole, const Divided& divided,
                         const Degrees& degrees) {
  const auto held = [&](Bytes bytes, bool is_divided) {
    const Bytes experts = part_of_kind(layer, bytes, WeightKind::experts);
    return Bytes{
        part_of((bytes - experts).count, is_divided,
                ranks_that_divide(degrees, WeightKind::dense)) +
        part_of(experts.count, is_divided, ranks_that_divide(degrees, WeightKind::experts))};
  };
  return {held(whole.weights, divided.weights), held(whole.gradients, divided.gradients),
          held(whole.optimizer, divided.optimizer)};
}

// One rank's part of a layer's state.
StateBytes part_of_layer(const Layer& layer, const StateBytes& whole, const Degrees& degrees,
                         double each) {
  if (degrees.precision.name.empty()) {
    return part_of_state(layer, whole, divided_by(divided_at_peak(degrees)), degrees);
  }
  const std::int64_t parameters = held_parameters(layer, each);
  const std::int64_t experts = held_experts(layer, parameters);
  const auto part = [&](std::int64_t count, WeightKind kind) {
    return state_bytes(count, degrees.precision, divided_at_peak(degrees),
                       ranks_that_divide(degrees, kind));
  };
  const StateBytes dense = part(parameters - experts, WeightKind::dense);
  const StateBytes routed = part(experts, WeightKind::experts);
  return {dense.weights + routed.weights, dense.gradients + routed.gradients,
          dense.optimizer + routed.optimizer};
}

// Picoseconds a parameter, of the layer whose optimizer's step is the fastest; 0: unknown.
double update_rate(const Model& model) {
  double least = 0;
  for (const Layer& layer : model.layers) {
    if (layer.parameters == 0 || layer.tied_weights != Bytes{} || layer.update == Time{}) continue;
    const double rate =
        static_cast<double>(layer.update.count()) / static_cast<double>(layer.parameters);
    if (least == 0 || rate < least) least = rate;
  }
  return least;
}

// The optimizer's step on the part of a rank, of the `parameters` that the layer holds.
Time part_of_update(const Layer& layer, std::int64_t parameters, double rate,
                    const Degrees& degrees) {
  const Time at_rate{std::llround(rate * static_cast<double>(parameters))};
  const Time divided = at_rate == Time{} ? layer.update : std::min(layer.update, at_rate);
  const std::int64_t experts = held_experts(layer, parameters);
  const Time routed = experts == 0 ? Time{} : *scaled(divided, experts, parameters);
  return layer.update - divided +
         *scaled(divided - routed, 1, ranks_that_divide(degrees, WeightKind::dense)) +
         *scaled(routed, 1, ranks_that_divide(degrees, WeightKind::experts));
}

void add_bytes(Bytes& workspace, Bytes more) {
  if (__builtin_add_overflow(workspace.count, more.count, &workspace.count)) {
    throw UsageError("the gathered weights of a layer take more than 2^62 bytes");
  }
}

// What a layer's ops hold while weights or gradients are whole.
void add_gathered(Layer& layer, Bytes forward, Bytes backward) {
  add_bytes(layer.forward_workspace, forward);
  add_bytes(layer.workspace, std::max(forward, backward));
  for (Bytes* const workspace :
       {&layer.backward_workspace, &layer.input_grad_workspace, &layer.weight_grad_workspace}) {
    add_bytes(*workspace, backward);
  }
}

}  // namespace

double bytes_per_parameter(const Model& model) {
  double bytes = 0;
  double parameters = 0;
  for (const Layer& layer : model.layers) {
    if (layer.parameters == 0) continue;
    bytes += static_cast<double>((layer.weights - layer.tied_weights).count);
    parameters += static_cast<double>(layer.parameters);
  }
  return parameters > 0 ? bytes / parameters : 0;
}

std::span<const PrecisionRecipe> precision_recipes() { return recipes; }

const Precision& find_precision(const std::string& text) {
  std::vector<std::string> known;
  for (const PrecisionRecipe& recipe : recipes) {
    if (recipe.precision.name == text) return recipe.precision;
    known.emplace_back(recipe.precision.name);
  }
  throw UsageError(fmt::format("no precision is called '{}' (there are {}){}", text,
                               fmt::join(known, ", "), did_you_mean(text, known)));
}

double gathered_share(const Precision& precision) {
  const auto* const found = std::find_if(
      recipes.begin(), recipes.end(),
      [&](const PrecisionRecipe& recipe) { return recipe.precision.name == precision.name; });
  if (found == recipes.end() || found->gathered == 0) return 1;
  return found->gathered / found->precision.weights;
}

Bytes part_of_kind(const Layer& layer, Bytes bytes, WeightKind kind) {
  if (kind == WeightKind::all) return bytes;
  const std::int64_t experts = held_experts(layer, layer.parameters);
  __extension__ using Wide = __int128;
  const Bytes routed{
      experts == 0 ? 0 : static_cast<std::int64_t>(Wide{bytes.count} * experts / layer.parameters)};
  return kind == WeightKind::experts ? routed : bytes - routed;
}

int ranks_that_hold(const Degrees& degrees, WeightKind kind) {
  if (kind == WeightKind::experts) return std::max(1, degrees.width() / degrees.expert_width());
  return degrees.data * degrees.context;
}

int ranks_that_divide(const Degrees& degrees, WeightKind kind) {
  return ranks_that_hold(degrees, kind) / shard_groups(degrees);
}

StateBytes state_bytes(std::int64_t parameters, const Precision& precision, Zero zero, int ranks) {
  const Divided divided = divided_by(zero);
  const auto held = [&](bool is_divided, double each) {
    return bytes_of(part_of(parameters, is_divided, ranks), each);
  };
  return {held(divided.weights, precision.weights), held(divided.gradients, precision.gradients),
          held(divided.optimizer, precision.optimizer)};
}

Model with_state(Model model, const Degrees& degrees) {
  if (!model.bytes_known) return model;
  const bool dense = ranks_that_divide(degrees, WeightKind::dense) > 1;
  const bool experts = ranks_that_divide(degrees, WeightKind::experts) > 1;
  const WeightKind gathered = dense ? WeightKind::all : WeightKind::experts;
  const std::vector<StateBytes> whole = whole_states(model, degrees.precision);
  const double each = bytes_per_parameter(model);
  const double rate = update_rate(model);
  const Divided divided = divided_by(divided_at_peak(degrees));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    Layer& layer = model.layers[i];
    const StateBytes part = part_of_layer(layer, whole[i], degrees, each);
    const std::int64_t held = held_parameters(layer, each);
    if (layer.tied_weights != Bytes{}) {
      layer.tied_weights = portion(part.weights, layer.tied_weights, layer.weights);
    }
    layer.weights = part.weights;
    layer.gradients = part.gradients;
    layer.optimizer_state = part.optimizer;
    if (is_frozen(model, i)) layer.gradients = layer.optimizer_state = Bytes{};
    if (!dense && !experts) continue;
    if (divided.optimizer) {
      const Time whole_update = layer.update;
      layer.update = part_of_update(layer, held, rate, degrees);
      if (whole_update > Time{}) {
        layer.update_spread =
            *scaled(layer.update_spread, layer.update.count(), whole_update.count());
      }
    }
    Bytes forward{};
    Bytes backward{};
    const auto of_kinds = [&](std::size_t at, Bytes StateBytes::*bytes) {
      return part_of_kind(model.layers[at], whole[at].*bytes, gathered);
    };
    if (divided.weights) {
      forward = backward = of_kinds(i, &StateBytes::weights);
      if (i + 1 < whole.size()) add_bytes(forward, of_kinds(i + 1, &StateBytes::weights));
      if (i > 0) add_bytes(backward, of_kinds(i - 1, &StateBytes::weights));
    }
    if (divided.gradients) add_bytes(backward, of_kinds(i, &StateBytes::gradients));
    add_gathered(layer, forward, backward);
  }
  return model;
}

}  // namespace stageline
