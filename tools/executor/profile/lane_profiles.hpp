// Profiles of one model on every lane of a run: each lane alone, and all of them at once.
//
// Includes ATen: for the files of tools/executor/ only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/profile/profile.hpp"

namespace stageline::executor {

class LaneProfiles {
 public:
  /// A thread and a copy of the model a lane, warmed up. Throws as ProfileSession does, as the
  /// functions below do. `request` names the device of the lanes.
  LaneProfiles(const ProfileRequest& request, const std::vector<Accelerator>& lanes);
  ~LaneProfiles();
  LaneProfiles(const LaneProfiles&) = delete;
  LaneProfiles& operator=(const LaneProfiles&) = delete;

  /// A round on each lane while the others rest.
  void rounds_alone();
  /// A round on all lanes at once; a lane that is done goes on working until all are. Lanes begin
  /// at different places of their steps, others in every round, as in a pipeline: lanes in step
  /// with each other would meet where each needs the memory most, and nowhere else.
  void round_together();

  /// The last lane's profile, alone.
  Profile result() const;
  /// By lane, its speed relative to the last one: both alone, or both beside all others, by the
  /// typical times of their steps.
  std::vector<double> rates(Company company = Company::alone) const;
  /// How many times as long a step takes while all other lanes work: the mean over the lanes of the
  /// ratio of their typical times. At least 1.
  double slowdown() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stageline::executor
