// An outcome in the units of those who train language models: tokens/s, FLOP/s, MFU, GPU-hours.
#pragma once

#include <array>
#include <optional>

#include "tools/study/case.hpp"
#include "tools/study/figures/energy.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// What training a number of tokens takes.
struct TrainingBudget {
  double tokens = 0;                     // to train on; 0: not asked
  std::optional<double> price_per_hour;  // US dollars a device; empty: that of its kind, if known
};

/// The rates of a step in the steady state. Empty where the trace does not say what it needs, or a
/// step takes no time.
struct TrainingRates {
  std::optional<double> tokens_per_second;         // of all devices together
  std::optional<double> tokens_per_device_second;  // the same over all devices
  std::optional<double> model_flops;               // of a step and all devices: nothing recomputed
  std::optional<double> hardware_flops;            // with what the program recomputes
  std::optional<double> flops_per_device_second;   // model_flops / step / devices
  std::optional<double> mfu;  // model_flops over what the devices' peaks allow in the step
  std::optional<double> hfu;  // hardware_flops likewise
  /// Time of blocking collectives on the compute lane of the busiest device in a step, by group in
  /// the order of all_dimensions, as a share of the step.
  GroupShares blocking{};
  /// Shares of the step: waits for messages and for reductions; Outcome::exposed_communication.
  double exposed = 0;
  /// Mean over the devices, of the time that was simulated: idle for messages between stages, and
  /// for reductions between replicas (IdleKind::link and IdleKind::collectives).
  double idle_for_messages = 0;
  double idle_for_reductions = 0;
  std::optional<double> device_hours;  // for the budget's tokens
  std::optional<double> days;
  std::optional<double> dollars;
};

/// Model FLOPs: those of all layers' F, I and W, for all micro-batches of all replicas and all
/// ranks that divide a layer. Hardware FLOPs: with those of the forwards that R repeats, of a stage
/// that is recomputed selectively its selective_flops alone; a layer that recomputation skips,
/// since its `recompute` is below a hundredth of its `forward`, repeats none. The peak of a device
/// is Model::peak_flops where its kind states such a peak; else that times its `rate`, of a kind
/// the highest: what slows a single device down does not lower its peak. `outcome` is that of
/// `asked`.
TrainingRates training_rates(const Case& asked, const Outcome& outcome,
                             const TrainingBudget& budget = {});

/// What depends on a training, or on a price, beside the outcome.
struct BudgetFigures {
  TrainingRates rates;
  StepEnergy energy;
};
BudgetFigures budget_figures(const Case& asked, const Outcome& outcome,
                             const TrainingBudget& budget = {});

}  // namespace stageline
