#include "cost_models/sharding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

void check(const Model& model, Dimension dimension, std::string_view member, int divided,
           int asked) {
  if (divided == asked) return;
  const std::string_view word = name(dimension);
  throw UsageError(fmt::format(
      "the layers of \"{0}\" are those of one rank of {1} {2}, and --{1} is {3}; take a trace that states \"sharding\": {{\"{4}\": {3}}}, a language model such as model:llama3-8b@DEVICE,{1}={3}, or --{1} {2}",
      model.name, word, divided, asked, member));
}

void check_expert_tensor(const Model& model, const Degrees& degrees) {
  const int divided = model.sharding.expert_tensor_ranks();
  const int asked = degrees.expert_tensor_ranks();
  if (divided == asked) return;
  throw UsageError(fmt::format(
      "the experts of \"{0}\" are divided by etp {1}, and --etp is {2}; take a trace that states \"sharding\": {{\"expert_tensor\": {2}}}, a model with experts such as model:mixtral-8x7b@DEVICE,etp={2}, or --etp {1}",
      model.name, divided, asked));
}

}  // namespace

void check_sharding(const Model& model, const Degrees& degrees) {
  check(model, Dimension::tensor, "tensor", model.sharding.tensor, degrees.tensor);
  check(model, Dimension::context, "context", model.sharding.context, degrees.context);
  if (model.sharding.expert == degrees.expert) {
    check_expert_tensor(model, degrees);
    return;
  }
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const Layer& layer) { return layer.expert_parameters > 0; });
  throw UsageError(fmt::format(
      "the layers of \"{0}\" are those of one rank of ep {1}{2}, and --ep is {3}; take a trace that states \"sharding\": {{\"expert\": {3}}}, a model with experts such as model:mixtral-8x7b@DEVICE,ep={3}, or --ep {1}",
      model.name, model.sharding.expert, experts ? "" : ", without experts", degrees.expert));
}

}  // namespace stageline
