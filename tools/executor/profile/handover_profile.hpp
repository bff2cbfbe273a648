// What memory that changes cores costs, measured with plain loops: writing what another core has
// read, and reading what another core has written, each beside the same in a core's own memory.
//
// Includes ATen: for the files of tools/executor/ only.
#pragma once

#include <memory>
#include <vector>

#include "sim/cluster.hpp"
#include "tools/executor/devices/accelerators.hpp"

namespace stageline::executor {

class HandoverProfile {
 public:
  /// Lanes that are cores, on which threads of its own wait. Nothing is measured of one lane, or of
  /// others than cores: what changes these is copied by an engine. Throws as enter().
  explicit HandoverProfile(const std::vector<Accelerator>& lanes);
  ~HandoverProfile();
  HandoverProfile(const HandoverProfile&) = delete;
  HandoverProfile& operator=(const HandoverProfile&) = delete;

  /// Some milliseconds of measuring, between a lane and the next one; another pair in every round.
  void round();
  /// From the typical times of all rounds so far.
  Handover result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stageline::executor
