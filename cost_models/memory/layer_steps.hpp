// What one op of a stage holds while it runs through its layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost_models/memory/moments.hpp"
#include "sim/base/units.hpp"
#include "sim/costs.hpp"

namespace stageline {

/// Throws UsageError, with the stage's number, where they do not fit into 64 bits.
Bytes fitting(Wide bytes, std::size_t stage);

/// The steps of one op, a layer each.
class LayerSteps {
 public:
  /// `held`: in bytes, at each moment between two layers; without `counted`, the stash that is held
  /// anyhow.
  LayerSteps(std::vector<Wide> held, std::int64_t counted, std::size_t stage);

  /// Bytes beside what there is at the moment above a layer, and at that below it.
  struct Beside {
    Wide above = 0;
    Wide below = 0;
  };
  /// The layer holds the more of what there is before and behind it, and its workspace. Throws as
  /// fitting().
  void add(int layer, Time time, Bytes workspace, Beside beside);

  /// In the order of add(). `most`: of all steps; at least 0.
  HeldSteps finish(Bytes& most) const;

 private:
  std::vector<Wide> held_;
  std::int64_t counted_;
  std::size_t stage_;
  std::vector<double> time_;  // ps
  std::vector<Bytes> beyond_;
};

}  // namespace stageline
