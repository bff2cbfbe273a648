// Finds the layers of each stage and the tensors that cross each edge.
#include "tools/executor/tensors/cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::executor {

Cut cut_of(const TensorModel& model, const Partition& partition,
           const std::vector<StageEdge>& edges) {
  Cut cut;
  cut.layers.resize(as_size(partition.stages));
  std::map<StageEdge, std::vector<std::size_t>> passing;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    const auto stage = static_cast<std::uint16_t>(partition.stage_of[layer]);
    cut.layers[stage].push_back(layer);
    for (const int from : {model.layers[layer].input, model.layers[layer].skip}) {
      if (from < 0) continue;
      const auto maker = as_size(from);
      const auto made_in = static_cast<std::uint16_t>(partition.stage_of[maker]);
      if (made_in == stage) continue;
      std::vector<std::size_t>& there = passing[{made_in, stage}];
      if (std::find(there.begin(), there.end(), maker) == there.end()) there.push_back(maker);
    }
  }
  for (const StageEdge edge : edges) {
    const auto found = passing.find(edge);
    if (found == passing.end()) {
      throw ProgramError(fmt::format(
          "the program has the stage edge {}>{}, but no layer of {} reads across it as it is cut",
          edge.from, edge.to, model.shape.name));
    }
    std::sort(found->second.begin(), found->second.end());
    cut.crossing.push_back(found->second);
    passing.erase(found);
  }
  if (!passing.empty()) {
    const StageEdge edge = passing.begin()->first;
    throw ProgramError(
        fmt::format("stage {1} of {2} as it is cut reads from stage {0}, but the program has no "
                    "edge {0}>{1}; give it the line \"edges:\" with all of them",
                    edge.from, edge.to, model.shape.name));
  }
  return cut;
}

}  // namespace stageline::executor
