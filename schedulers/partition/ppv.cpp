// The pipeline placement vector of Zhang and Abdelrahman: cuts behind the p-th layer, counting as
// the paper does, so that ResNet-20's (7) is the end of its first group of channels.
//
//   ppv:2    conv1 bn relu conv2 bn add relu | conv3 bn …
//              1             2                   3
//
// Counted are layers with weights of their own (convolutions, linear layers, embeddings, …) but no
// normalizations. Layers between a counted layer and the next one stay with it: a stage ends
// just before a counted layer.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::ppv_partitioner {
namespace {

// Kinds are free text: "norm" in our traces, "layer_norm" in another's.
bool is_normalization(const Layer& layer) { return layer.kind.find("norm") != std::string::npos; }

// The counted layers. A trace that knows of no weights has layers only: all count.
std::vector<int> counted_layers(const Model& model) {
  const bool known = std::any_of(model.layers.begin(), model.layers.end(),
                                 [](const Layer& layer) { return layer.weights.count > 0; });
  std::vector<int> counted;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (!known || (layer.weights.count > 0 && !is_normalization(layer))) {
      counted.push_back(static_cast<int>(i));
    }
  }
  return counted;
}

std::string counted_text(std::size_t count) {
  return fmt::format("{} layer{} with weights (normalizations not counted)", count,
                     count == 1 ? "" : "s");
}

// "7,13" → 7, 13, each between 1 and the number of counted layers - 1, ascending.
std::vector<int> parse_vector(const PartitionRequest& request, std::size_t counted) {
  std::vector<int> vector;
  for (const std::string& item : split_at_commas(request.options)) {
    const int position = parse_number<int>(item).value_or(0);
    if (position < 1) {
      throw UsageError(fmt::format(
          "partition \"ppv:{}\": \"{}\" is no position; write whole numbers from 1, the "
          "layers with weights to cut behind, like ppv:7 or ppv:7,13",
          request.options, item));
    }
    if (as_size(position) >= counted) {
      throw UsageError(fmt::format(
          "partition \"ppv:{}\": position {} is too large: the model \"{}\" has {}, and a cut must "
          "leave at least 1 behind it",
          request.options, position, request.model.name, counted_text(counted)));
    }
    if (!vector.empty() && position <= vector.back()) {
      throw UsageError(fmt::format(
          "partition \"ppv:{}\": position {} does not lie behind {}; write them ascending",
          request.options, position, vector.back()));
    }
    vector.push_back(position);
  }
  return vector;
}

PartitionPlan plan(const PartitionRequest& request) {
  if (request.options.empty()) {
    throw UsageError(
        "partitioner \"ppv\" needs the layers with weights to cut behind, like ppv:7 or ppv:7,13");
  }
  const std::vector<int> counted = counted_layers(request.model);
  const std::vector<int> vector = parse_vector(request, counted.size());
  const int stages = static_cast<int>(vector.size()) + 1;
  const int devices = static_cast<int>(request.cluster.devices.size());
  const bool open = request.replicate && request.replicas.empty();  // the plan may say how many
  if (open ? stages > devices : stages != request.stages) {
    throw UsageError(
        fmt::format("partition \"ppv:{}\" has {} position{} and so makes {} stages, but the "
                    "schedule makes {} on "
                    "{} device{}; give {}",
                    request.options, vector.size(), vector.size() == 1 ? "" : "s", stages,
                    request.stages, devices, devices == 1 ? "" : "s",
                    request.stages == 1   ? "more devices"
                    : request.stages == 2 ? "1 position"
                                          : fmt::format("{} positions", request.stages - 1)));
  }
  std::vector<int> last_layers;
  std::string places;
  for (const int position : vector) {
    last_layers.push_back(nth(counted, position) - 1);
    places += (places.empty() ? "" : ", ") + nth(request.model.layers, last_layers.back()).name;
  }
  PartitionPlan plan = plan_from_cuts(request, last_layers, "");
  plan.reason = fmt::format("behind {} of {}; {}", places, counted_text(counted.size()),
                            balance_of(request, plan.partition));
  return plan;
}

}  // namespace

extern const Partitioner entry = {
    "ppv", "behind the given layers, counting those with weights but no normalizations",
    "pipeline placement vector, arXiv 1912.12675",
    "p1,p2,...  (ascending, one less than stages: ppv:7 is the end of ResNet-20's first group)",
    plan};

}  // namespace stageline::ppv_partitioner
