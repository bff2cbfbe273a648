#include "schedulers/partition/deepspeed.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_weights = 4096;  // the search is of their square times the stages

// The best cut of the first items into so many parts.
struct BestParts {
  std::int64_t largest = 0;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  std::size_t begin = 0;  // of the last part
  bool there = false;

  std::int64_t difference() const { return largest - smallest; }
};

}  // namespace

std::vector<BlockLayers> deepspeed_layers(const Model& model) {
  std::vector<BlockLayers> layers;
  const std::vector<BlockLayers> blocks = blocks_of(model);
  std::size_t block = 0;
  const int count = static_cast<int>(model.layers.size());
  for (int at = 0; at < count; ++at) {
    if (block < blocks.size() && blocks[block].first == at) {
      layers.push_back(blocks[block]);
      at = blocks[block++].last;
    } else {
      layers.push_back({at, at});
    }
  }
  return layers;
}

std::vector<int> balanced_parts(const std::vector<std::int64_t>& weights, int parts) {
  const std::size_t items = weights.size();
  std::vector<std::int64_t> before(items + 1);
  for (std::size_t i = 0; i < items; ++i) before[i + 1] = before[i] + weights[i];
  // By number of parts, then of items.
  std::vector<std::vector<BestParts>> best(as_size(parts) + 1, std::vector<BestParts>(items + 1));
  best[0][0].there = true;
  for (std::size_t part = 1; part < best.size(); ++part) {
    for (std::size_t end = part; end <= items; ++end) {
      BestParts& found = best[part][end];
      for (std::size_t begin = part - 1; begin < end; ++begin) {
        const BestParts& rest = best[part - 1][begin];
        if (!rest.there) continue;
        const std::int64_t last = before[end] - before[begin];
        const BestParts one{std::max(rest.largest, last), std::min(rest.smallest, last), begin,
                            true};
        if (!found.there || one.difference() <= found.difference()) found = one;
      }
    }
  }
  std::vector<int> last_items;
  std::size_t end = items;
  for (std::size_t part = as_size(parts); part > 1; --part) {
    end = best[part][end].begin;
    last_items.push_back(static_cast<int>(end) - 1);
  }
  std::reverse(last_items.begin(), last_items.end());
  return last_items;
}

PartitionPlan plan_by_weights(const PartitionRequest& request, const std::string& method,
                              const std::vector<std::int64_t>& weights) {
  check_stages(request);
  if (weights.size() > most_weights) {
    throw UsageError(fmt::format("{}: {} has {} layers, and at most {} are cut so", method,
                                 request.model.name, weights.size(), most_weights));
  }
  if (static_cast<int>(weights.size()) < request.stages) {
    throw UsageError(fmt::format(
        "{}: {} has {} layers and blocks, and {} stages need one each; use fewer stages", method,
        request.model.name, weights.size(), request.stages));
  }
  const std::vector<BlockLayers> layers = deepspeed_layers(request.model);
  std::vector<int> last_layers;
  for (const int item : balanced_parts(weights, request.stages)) {
    last_layers.push_back(nth(layers, item).last);
  }
  PartitionPlan plan = plan_from_cuts(request, last_layers, "");
  plan.reason =
      fmt::format("as DeepSpeed cuts by {}; {}", method, balance_of(request, plan.partition));
  return plan;
}

}  // namespace stageline
