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
      "the layers of \"{}\" are those of one rank of {} {}, and --{} is {}; take a trace of one rank "
      "of {} {} (which states \"sharding\": {{\"{}\": {}}}), model:gpt@DEVICE,{}={} or a language "
      "model such as model:llama3-8b@DEVICE,{}={}, or --{} {}",
      model.name, word, divided, word, asked, word, asked, member, asked, word, asked, word, asked,
      word, divided));
}

}  // namespace

void check_sharding(const Model& model, const Degrees& degrees) {
  check(model, Dimension::tensor, "tensor", model.sharding.tensor, degrees.tensor);
  check(model, Dimension::context, "context", model.sharding.context, degrees.context);
  if (model.sharding.expert == degrees.expert) return;
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const Layer& layer) { return layer.expert_parameters > 0; });
  throw UsageError(fmt::format(
      "the layers of \"{}\" are those of one rank of ep {}{}, and --ep is {}; take a trace of one rank "
      "of ep {} (which states \"sharding\": {{\"expert\": {}}}), a language model with experts such as "
      "model:mixtral-8x7b@DEVICE,ep={}, or --ep {}",
      model.name, model.sharding.expert, experts ? "" : ", without experts", degrees.expert,
      degrees.expert, degrees.expert, degrees.expert, model.sharding.expert));
}

}  // namespace stageline
