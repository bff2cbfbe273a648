// Derives tokens/s, FLOP/s, MFU and the price of a training from an outcome.
#include "tools/study/figures/training_rates.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost_models/recomputation.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr double hours_a_day = 24;

// The ranks that share each layer of one micro-batch. Expert-parallel ranks have micro-batches of
// their own.
double ranks_of_a_layer(const Model& model, std::size_t layer) {
  const bool in_encoder = layer < as_size(model.encoder.count);
  return static_cast<double>(in_encoder ? model.encoder.tensor : model.sharding.tensor) *
         model.sharding.context;
}

// 0: unknown, as where an encoder's are.
double flops_of_a_microbatch(const Model& model) {
  double of_encoder = 0;
  double flops = 0;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    (l < as_size(model.encoder.count) ? of_encoder : flops) +=
        static_cast<double>(layer.forward_flops) + static_cast<double>(layer.backward_flops);
  }
  flops *= ranks_of_a_layer(model, as_size(model.encoder.count));
  if (model.encoder.count == 0) return flops;
  return of_encoder == 0 ? 0 : flops + of_encoder * ranks_of_a_layer(model, 0);
}

// One R of each stage, a whole micro-batch.
std::vector<double> repeated_flops(const Case& asked, const Outcome& outcome) {
  constexpr int skipped = 100;  // recompute below this part of forward
  const Partition& cut = outcome.plan.partition;
  const std::vector<StageRecomputation> rebuilt = by_stage(asked.recomputation, asked.model, cut);
  std::vector<double> flops(as_size(cut.stages));
  std::vector<int> layers(flops.size());  // so far
  std::vector<double> ranks(flops.size());
  for (std::size_t l = 0; l < asked.model.layers.size(); ++l) {
    const Layer& layer = asked.model.layers[l];
    const int stage = cut.stage_of[l];
    const int place = nth(layers, stage)++;
    nth(ranks, stage) = ranks_of_a_layer(asked.model, l);
    const StageRecomputation how = rebuilt.empty() ? StageRecomputation{} : nth(rebuilt, stage);
    if (!is_rebuilt(how, place)) continue;
    if (!repeats_forward(how, place)) {
      nth(flops, stage) += static_cast<double>(selective_flops(layer, how, place));
    } else if (layer.recompute == Time{} || layer.recompute * skipped >= layer.forward) {
      nth(flops, stage) += static_cast<double>(layer.forward_flops);
    }
  }
  for (std::size_t s = 0; s < flops.size(); ++s) flops[s] *= ranks[s];
  return flops;
}

// By the R of the program, in one step of the pipelines that are simulated.
double repeated_in_a_step(const Case& asked, const Outcome& outcome) {
  const std::vector<std::int64_t>& repeats = outcome.figures.repeats;
  if (std::all_of(repeats.begin(), repeats.end(), [](std::int64_t all) { return all == 0; })) {
    return 0;
  }
  const std::vector<double> flops = repeated_flops(asked, outcome);
  double sum = 0;
  for (std::size_t s = 0; s < flops.size(); ++s) sum += static_cast<double>(repeats[s]) * flops[s];
  const double whole = flops_of_a_microbatch(asked.model);
  if (whole > 0) sum *= asked.mean_of(flops_of_a_microbatch) / whole;
  return sum / outcome.program.steps / outcome.program.settings.sequence_chunks;
}

bool states_peak(const DeviceKind& kind, double flops) {
  return std::any_of(kind.peak.begin(), kind.peak.end(),
                     [&](const PeakRate& peak) { return peak.flops == flops; });
}

// All devices together, per second.
double peak_flops(const Model& model, const Cluster& cluster) {
  std::vector<double> rate(cluster.kinds.size());
  for (const Device& device : cluster.devices) {
    if (device.kind >= 0) nth(rate, device.kind) = std::max(nth(rate, device.kind), device.rate);
  }
  for (std::size_t k = 0; k < rate.size(); ++k) {
    if (states_peak(cluster.kinds[k], model.peak_flops)) rate[k] = 1;
  }
  double sum = 0;
  for (const Device& device : cluster.devices) {
    sum += device.kind >= 0 ? nth(rate, device.kind) : device.rate;
  }
  return sum * model.peak_flops;
}

void set_flops(TrainingRates& rates, const Case& asked, const Outcome& outcome) {
  const double microbatch = asked.mean_of(flops_of_a_microbatch);
  if (!(microbatch > 0)) return;
  const double step = to_seconds(outcome.step_time);
  const double copies = outcome.copies;
  rates.model_flops = microbatch * outcome.microbatches * copies;
  rates.hardware_flops = *rates.model_flops + repeated_in_a_step(asked, outcome) * copies;
  rates.flops_per_device_second = *rates.model_flops / step / asked.device_count();
  const double peak = peak_flops(asked.model, asked.all_devices());
  if (!(peak > 0)) return;
  rates.mfu = *rates.model_flops / (step * peak);
  rates.hfu = *rates.hardware_flops / (step * peak);
}

void set_communication(TrainingRates& rates, const Outcome& outcome) {
  rates.exposed = outcome.exposed_communication;
  const std::vector<DeviceMetrics>& devices = outcome.metrics.device;
  if (devices.empty()) return;
  rates.blocking = outcome.figures.blocking_by_group;
  const double all = static_cast<double>(devices.size()) * to_seconds(outcome.metrics.makespan);
  for (const DeviceMetrics& device : devices) {
    rates.idle_for_messages += to_seconds(nth(device.idle_by, IdleKind::link)) / all;
    rates.idle_for_reductions += to_seconds(nth(device.idle_by, IdleKind::collectives)) / all;
  }
}

void set_budget(TrainingRates& rates, const Case& asked, const TrainingBudget& budget) {
  if (!(budget.tokens > 0) || !rates.tokens_per_second) return;
  const double hours = budget.tokens / *rates.tokens_per_second / seconds_an_hour;
  rates.device_hours = hours * asked.device_count();
  rates.days = hours / hours_a_day;
  if (const auto price = hourly_price(asked, budget.price_per_hour)) rates.dollars = hours * *price;
}

}  // namespace

TrainingRates training_rates(const Case& asked, const Outcome& outcome,
                             const TrainingBudget& budget) {
  TrainingRates rates;
  if (outcome.step_time == Time{}) return rates;
  if (asked.model.tokens > 0 && outcome.microbatch_size > 0) {
    const double samples =
        static_cast<double>(outcome.microbatches) * outcome.microbatch_size * outcome.copies;
    rates.tokens_per_second = samples * asked.mean_of([](const Model& model) {
      return static_cast<double>(model.tokens);
    }) / to_seconds(outcome.step_time);
    rates.tokens_per_device_second = *rates.tokens_per_second / asked.device_count();
  }
  set_flops(rates, asked, outcome);
  set_communication(rates, outcome);
  set_budget(rates, asked, budget);
  return rates;
}

BudgetFigures budget_figures(const Case& asked, const Outcome& outcome,
                             const TrainingBudget& budget) {
  return {training_rates(asked, outcome, budget),
          step_energy(asked, outcome, budget.price_per_hour)};
}

}  // namespace stageline
