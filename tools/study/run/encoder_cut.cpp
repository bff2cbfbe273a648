#include "tools/study/run/encoder_cut.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "cost_models/encoder.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// As the devices of a part of a pipeline.
PartitionPlan cut_part(const Case& asked, const Model& model, int first, int stages) {
  Cluster cluster = asked.cluster;
  cluster.devices.assign(asked.cluster.devices.begin() + first,
                         asked.cluster.devices.begin() + first + stages);
  PartitionRequest request{model, cluster, stages, false, "", {}};
  request.apart.resize(as_size(stages));
  for (int s = 0; s < stages; ++s) request.placed.push_back({s});
  return partition(asked.partition, request);
}

}  // namespace

void check_encoder_places(const Case& asked, const std::string& schedule,
                          const Placement& placement, int devices) {
  if (asked.encoder_stages == 0) return;
  bool straight = placement.stages() == devices;
  for (int s = 0; straight && s < devices; ++s) {
    const StagePlace& place = nth(placement.stage, s);
    straight = !place.apart() && place.replicas == std::vector{s};
  }
  if (straight) return;
  throw UsageError(fmt::format(
      "{} does not give every device one stage in the order of the model, and an encoder's stages "
      "have devices of their own; take a schedule that does, such as 1f1b",
      schedule));
}

PartitionPlan cut_behind_encoder(const Case& asked, const PartitionRequest& request) {
  const std::string head = asked.partition.substr(0, asked.partition.find(':'));
  const auto& known = partitioners();
  const bool by_rule = std::any_of(known.begin(), known.end(),
                                   [&](const Partitioner* one) { return one->name == head; });
  if (!by_rule) {
    PartitionPlan plan = partition(asked.partition, request);
    const std::vector<int>& stage_of = plan.partition.stage_of;
    const int last = nth(stage_of, asked.model.encoder.count - 1);
    if (last + 1 == asked.encoder_stages && nth(stage_of, asked.model.encoder.count) > last) {
      return plan;
    }
    throw UsageError(fmt::format(
        "partition \"{}\": the encoder has layers 0 to {} and {} stage{} of its own; give {} before "
        "layer {}",
        asked.partition, asked.model.encoder.count - 1, asked.encoder_stages,
        asked.encoder_stages == 1 ? "" : "s",
        asked.encoder_stages == 1 ? "one range" : fmt::format("{} ranges", asked.encoder_stages),
        asked.model.encoder.count));
  }
  PartitionPlan plan = cut_part(asked, encoder_of(asked.model), 0, asked.encoder_stages);
  const PartitionPlan behind = cut_part(asked, behind_encoder(asked.model), asked.encoder_stages,
                                        request.stages - asked.encoder_stages);
  for (const int stage : behind.partition.stage_of) {
    plan.partition.stage_of.push_back(stage + asked.encoder_stages);
  }
  plan.partition.stages += behind.partition.stages;
  plan.replicas.insert(plan.replicas.end(), behind.replicas.begin(), behind.replicas.end());
  plan.reason = fmt::format("encoder: {}; model: {}", plan.reason, behind.reason);
  return plan;
}

}  // namespace stageline
