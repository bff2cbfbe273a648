// What data-parallel ranks exchange under ZeRO (arXiv 1910.02054) and FSDP, and how much of it
// compute hides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/degrees.hpp"
#include "sim/model.hpp"

namespace stageline {

/// When a collective runs: in every F, in every B, in the first F of a step, behind the last B of a
/// step, or behind the update.
enum class ExchangeTime : std::uint8_t { forward, backward, first_forward, last_backward, update };

/// Which of the ranks that hold the same weights: those of a shard group (sim/degrees.hpp), or one
/// of each, which have the same part.
enum class Among : std::uint8_t { shard_group, shard_groups };

struct StateExchange {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{};  // of the full tensor; among shard groups, of a part
  ExchangeTime when = ExchangeTime::last_backward;
  Among among = Among::shard_group;
  friend bool operator==(const StateExchange&, const StateExchange&) = default;
};
/// The exchanges for weights and gradients of so many bytes, undivided:
///   ZeRO 0   all-reduce of the gradients once a step
///   1        reduce-scatter of the gradients once a step, all-gather of the updated weights
///   2        reduce-scatter of the gradients in every B, all-gather of the updated weights; once a
///            step as 1
///   3        all-gather of the weights in every F and every B, reduce-scatter of the gradients in
///            every B; once a step all-gather in the first F, reduce-scatter as 1
/// `every` counts of ZeRO 2 and 3. Where ZeRO divides within several shard groups of `ranks` each,
/// they add up the parts of the gradients once a step: all-reduce of ⌈gradients / ranks⌉.
std::vector<StateExchange> state_exchanges(Zero zero, ZeroEvery every, Bytes weights,
                                           Bytes gradients, int groups = 1, int ranks = 1);

/// A layer whose gradients are divided, or its weights, too: FSDP's unit.
struct GatheredUnit {
  Time forward{};
  Time backward{};
  Time gather{};   // all-gather of its weights; 0 where they are whole
  Time scatter{};  // reduce-scatter of its gradients
};

/// What F and B of a stage take beyond their compute.
struct ExposedTimes {
  Time forward{};
  Time backward{};
  friend bool operator==(const ExposedTimes&, const ExposedTimes&) = default;
};
/// The times that the units of a stage, in forward order, expose. While one unit computes, one
/// queue gathers the next one's weights and, backward, scatters the last one's gradients. No more
/// than two units' weights are whole at any time, so a gather waits until the unit before the last
/// has ended. This is FSDP's default: limit_all_gathers is true, _FreeEventQueue holds two
/// all-gathers, and BACKWARD_PRE prefetches one unit (PyTorch, torch/distributed/fsdp:
/// _limiter_utils.py, fully_sharded_data_parallel.py). Exposed are
///   forward    g₀ + Σ max(0, gᵢ₊₁ − Fᵢ)
///   backward   gₙ₋₁ + Σ max(0, gᵢ₋₁ + rᵢ₊₁ − Bᵢ) + r₀
/// with the first gather and the last reduce-scatter, which nothing of the op hides.
ExposedTimes exposed_gathers(std::span<const GatheredUnit> units);

/// What the first F of a step exposes of the gathers of weights that stay for the step: as the
/// forward of exposed_gathers(), but the first unit's gather runs beside `before`, the forward of
/// the unit that the device computes before them:
///   max(0, g₀ − before) + Σ max(0, gᵢ₊₁ − Fᵢ)
/// Units that stay whole need not wait for each other, so a queue that ran further ahead could hide
/// more, but never a gather before the first unit of a device.
Time exposed_first_gathers(std::span<const GatheredUnit> units, Time before);

}  // namespace stageline
