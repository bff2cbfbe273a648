// Adds up the rounds of the profiles and the runs of a validation.
#include "tools/executor/programs/expected_effort.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

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
  // Each length of micro-batches that differ is profiled beside the usual one.
  const std::set<std::int64_t> lengths(plan.lengths.begin(), plan.lengths.end());
  const auto profiles = static_cast<std::int64_t>(1 + lengths.size());
  // A profile's rounds, each on every lane alone and then on all at once.
  // What does not compute is profiled before the runs alone.
  const auto profiled = static_cast<double>(
      computes ? (1 + profiles) * preparing_rounds * lanes +
                     variants * plan.rounds * plan.profile_rounds * (lanes + 1) * profiles
               : preparing_rounds);
  // A run that is counted for its memory follows one that is not.
  const int runs = (warm_up_runs(plan) + 1) * plan.rounds + (computes ? 2 * plan.counted_runs : 0);
  const auto steps =
      static_cast<double>(variants * runs) * plan.microbatches / static_cast<double>(lanes);
  Bytes run{};  // of the largest case
  for (const ModelSizes& model : plan.models) {
    for (const int batch : model.batches) {
      const ExpectedCost cost =
          expected_cost(profile_request(plan, model.shape, batch, profiled_lane), rates);
      effort.seconds += (computes ? 2 : 1) * cost.warm_up_seconds + profiled * cost.round_seconds +
                        steps * cost.step_seconds;
      if (!computes) {
        effort.tensors = std::max(effort.tensors, cost.session());
        continue;
      }
      effort.tensors += cost.session() * lanes * (1 + profiles);  // of half of the model and of all
      run = std::max(run, cost.standing + cost.stash * plan.microbatches);
    }
  }
  effort.tensors += run;
  return effort;
}

}  // namespace stageline::executor
