// Equal numbers of layers, whatever they cost: 10 layers in 4 stages are 3, 3, 2, 2.
#include <fmt/core.h>

#include "schedulers/partition/cuts.hpp"

namespace stageline::uniform_partitioner {
namespace {

PartitionPlan plan(const PartitionRequest& request) {
  check_stages(request);
  const int layers = static_cast<int>(request.model.layers.size());
  const int each = layers / request.stages;
  const int larger = layers % request.stages;
  std::vector<int> last_layers;
  int last = -1;
  for (int stage = 0; stage + 1 < request.stages; ++stage) {
    last += stage < larger ? each + 1 : each;
    last_layers.push_back(last);
  }
  PartitionPlan plan = plan_from_cuts(request, last_layers, "");
  const std::string counts =
      larger == 0 ? fmt::format("{}", each) : fmt::format("{} or {}", each + 1, each);
  plan.reason = fmt::format("{} layers a stage; {}", counts, balance_of(request, plan.partition));
  return plan;
}

}  // namespace

extern const Partitioner entry = {"uniform", "equal numbers of layers, larger stages first", "", "",
                                  plan};

}  // namespace stageline::uniform_partitioner
