// Asks a row's question and reads the answer.
#include <algorithm>
#include <cstdint>

#include "cost_models/transformers/priced_language.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/published/points.hpp"
#include "tools/study/figures/reported_memory.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline {
namespace {

// Micro-batches of all chunks whose backward is due, at most, on the first device.
int most_in_flight(const Program& program) {
  int now = 0;
  int most = 0;
  for (const Op op : program.ops.front()) {
    if (op.kind == OpKind::forward) most = std::max(most, ++now);
    if (op.kind == OpKind::backward || op.kind == OpKind::weight_grad) --now;
  }
  return most;
}

// Korthikanti et al. 2022 (arXiv 2205.05198) count the blocks of the first stage alone: their
// parameters, without norms and biases, and what they keep of the micro-batches in flight.
double memory_of_blocks(const answers::Request& request, const answers::Result& result,
                        const Outcome& outcome) {
  const Precision& precision = request.setting.degrees.precision;
  const double parameter_bytes = precision.weights + precision.gradients + precision.optimizer;
  const Partition& partition = outcome.plan.partition;
  const std::vector<StageRecomputation> rebuilt =
      by_stage(request.setting.recomputation, result.setting.model, partition);
  double state = 0;
  double kept = 0;
  int in_stage = 0;  // layers of the first stage so far
  for (std::size_t at = 0; at < partition.stage_of.size(); ++at) {
    const Layer& layer = result.setting.model.layers[at];
    const int stage = partition.stage_of[at];
    const int here = stage == 0 ? in_stage++ : 0;
    const StagePlace& place = nth(outcome.program.placement.stage, stage);
    if (layer.kind != "block" || place.device(Role::forward) != 0) continue;
    state += parameter_bytes * static_cast<double>(layer.parameters);
    if (stage > 0) continue;  // chunks are alike: a micro-batch in flight is one of a chunk
    const Bytes rebuilt_bytes =
        rebuilt.empty() ? Bytes{} : selective_stash(layer, rebuilt.front(), here);
    kept += static_cast<double>(
        (layer.stash_input_grad + layer.stash_weight_grad - rebuilt_bytes).count);
  }
  return state + kept * most_in_flight(outcome.program);
}

double fullest_device(const Case& asked, const Outcome& outcome, MemoryCounter counter) {
  const double share = counter == MemoryCounter::allocated ? 1 : reserved_share(asked).mean;
  double most = 0;
  for (const DeviceMemory& device : outcome.memory.device) {
    const Bytes reserve = counter == MemoryCounter::driver ? device.reserve : Bytes{};
    most = std::max(
        most, share * static_cast<double>(device.peak.count) + static_cast<double>(reserve.count));
  }
  return most;
}

}  // namespace

PointPrediction predicted(const Question& question) {
  if (!question.why_not.empty()) throw UsageError(question.why_not);
  const answers::Result result = answer(question.request);
  const Row& row = result.rows.front();
  if (!row.outcome) throw UsageError(row.why_not);
  PointPrediction prediction;
  prediction.step = to_seconds(row.outcome->step_time);
  if (row.outcome->bytes_known()) {
    prediction.memory = question.blocks_alone
                            ? memory_of_blocks(question.request, result, *row.outcome)
                            : fullest_device(row.asked, *row.outcome, question.counter);
  }
  prediction.model_flops = row.figures.rates.model_flops.value_or(0);
  prediction.flops_per_gpu = row.figures.rates.flops_per_device_second.value_or(0);
  prediction.tokens_per_gpu_second = row.figures.rates.tokens_per_device_second.value_or(0);
  prediction.mfu = row.figures.rates.mfu.value_or(0);
  prediction.of = run_class(row.asked.model(), row.asked.ranked());
  if (const auto priced = priced_language(row.asked.model())) {
    prediction.software = priced->software;
  }
  const bool ran = !question.blocks_alone;
  if (ran && row.outcome->fit != Fit::unknown) prediction.fits = row.outcome->fit == Fit::yes;
  return prediction;
}

}  // namespace stageline
