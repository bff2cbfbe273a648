// Adds up the rounds of the profiles and the runs of a validation.
#include "tools/executor/programs/expected_effort.hpp"

#include <algorithm>
#include <cstdint>

#include "tools/executor/profile/expected_cost.hpp"

namespace stageline::executor {

ProfileRequest profile_request(const ValidationPlan& plan, const std::string& shape, int batch,
                               const Accelerator& lane) {
  ProfileRequest request;
  request.shape = parse_shape(shape);
  request.batch = batch;
  request.optimizer = optimizer_called(request.shape.usual_optimizer);
  request.device = lane.where.str();
  request.dtype = plan.dtype;
  return request;
}

Effort expected_effort(const ValidationPlan& plan, std::size_t lane_count,
                       const Accelerator& profiled_lane) {
  Effort effort;
  const QuickRates rates = quick_rates(profiled_lane.where.str());
  const auto lanes = static_cast<std::int64_t>(lane_count);
  const auto variants = static_cast<std::int64_t>(plan.variants.size());
  const bool computes = !plan.imitate;
  // A profile's rounds, each on every lane alone and then on all at once.
  // What does not compute is profiled before the runs alone.
  const auto profiled = static_cast<double>(computes ? preparing_rounds * lanes +
                                                           variants * (plan.rounds + 1) *
                                                               plan.profile_rounds * (lanes + 1)
                                                     : preparing_rounds);
  // A case runs twice a round, and twice for its memory.
  const auto steps = static_cast<double>(variants * (2 * (plan.rounds + 1) + 2)) *
                     plan.microbatches / static_cast<double>(lanes);
  Bytes in_flight{};  // of the largest run
  for (const ModelSizes& model : plan.models) {
    for (const int batch : model.batches) {
      const ExpectedCost cost =
          expected_cost(profile_request(plan, model.shape, batch, profiled_lane), rates);
      effort.seconds +=
          cost.warm_up_seconds + profiled * cost.round_seconds + steps * cost.step_seconds;
      if (!computes) {
        effort.tensors = std::max(effort.tensors, cost.session());
        continue;
      }
      effort.tensors += cost.session() * lanes + cost.standing * variants;
      in_flight = std::max(in_flight, cost.stash * plan.microbatches);
    }
  }
  effort.tensors += in_flight;
  return effort;
}

}  // namespace stageline::executor
