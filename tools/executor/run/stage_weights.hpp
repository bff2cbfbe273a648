// The weights of one device's stages and their versions: which one an op reads, what an update
// makes of them, and how they reach the other devices that read them.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/run/device_model.hpp"
#include "tools/executor/run/gradient_sums.hpp"
#include "tools/executor/run/in_flight.hpp"
#include "tools/executor/run/optimizer_shards.hpp"
#include "tools/executor/run/planned_versions.hpp"
#include "tools/executor/run/stage_messages.hpp"

namespace stageline::executor {

class StageWeights {
 public:
  /// All outlive it.
  StageWeights(DeviceModel& here, Exchange& exchange, StageMessages& messages,
               const PlannedVersions& planned);
  /// The weights stay, and count their versions from the run's beginning again.
  void restart();

  std::uint32_t newest(int stage) const { return nth(newest_, stage); }
  StageVersion newest_version(int stage) const;
  /// Older versions that are still kept, by their number.
  const std::map<std::uint32_t, StageVersion>& past(int stage) const { return nth(past_, stage); }

  /// Takes in the versions that have come from the device that updates the stage.
  void receive(int stage);
  /// At the end of a run with Job::separate: versions that have come since the last op of their
  /// stage are the sender's no more. They stay in their room here, which is there all the time.
  void leave_rest();
  /// Waits until the version that the plan names for the op has come.
  void await_planned(Op op);

  /// The version that a forward reads, by the plan or the program's weight rule.
  std::uint32_t version_for_forward(Op op);
  /// By layer of the stage. Empty: the newest, which are in the model.
  std::vector<Tensors> weights_for_forward(Op op, std::uint32_t version) const;
  /// The same. Where the forward was on another device, its version has come here before.
  std::vector<Tensors> weights_for_backward(Op op, const InFlight& flight);

  /// The optimizer's step; returns the number of the version that it makes. With a sharded
  /// optimizer that is whole once gather() has brought the other replicas' shards.
  std::uint32_t update(Op op, GradientSums& sums);
  /// Before the next op of the stage.
  void gather(int stage) { shards_.gather(stage); }
  void gather_all() { shards_.gather_all(); }
  /// Whether there is room for the next version of the stage, which comes by message, all the time.
  bool has_room_for_next(int stage) const {
    return job_.program.settings.weights_transfer && is_updated_elsewhere(stage);
  }
  std::int64_t bytes_of_values(int stage) const;
  /// Whether new versions come beside those that ops here read, so that each one's memory is
  /// counted as it comes and goes.
  bool counts_versions(int stage) const {
    return job_.separate && has_room_for_next(stage) && !overwrites(stage);
  }
  /// With a plan: drops versions that no pass here and no state to be shown needs.
  void drop_unneeded(int stage);

 private:
  void begin_at(std::size_t stage, const StageState& start);
  bool is_updated_elsewhere(int stage) const;
  bool is_shared(int stage) const;
  bool reads_past(int stage) const;
  void receive_shared(int stage);
  void receive_messages(int stage);
  StageVersion shown_version(int stage) const;
  bool overwrites(int stage) const;
  std::vector<Tensors> own_copy(int stage, const std::vector<Tensors>& values) const;
  void take_in(int stage, StageVersion version, std::uint32_t number);
  void send(int stage, std::uint32_t update);
  StageVersion version(int stage, std::uint32_t wanted) const;
  std::vector<Tensors> predicted(int stage, const StageVersion& version) const;
  std::vector<Tensors> rebuilt(const StageVersion& version, std::uint32_t updates) const;
  std::vector<Tensors> remembered(int stage, const std::vector<Tensors>& before,
                                  const std::vector<Tensors>& after) const;
  void drop_before(int stage, std::uint32_t number);
  void make_room(int stage);
  void copy_values(int stage);
  void take_room(int stage);
  void give_room_back(int stage);
  OptimizerStep optimizer_step(int stage) const;
  void step(Op op);

  DeviceModel& here_;
  const Job& job_;
  Exchange& exchange_;
  StageMessages& messages_;
  const PlannedVersions& planned_;
  OptimizerShards shards_;
  Corrections corrections_;
  std::vector<std::vector<Op>> forwards_;  // by stage: those to come here, the next one last
  std::vector<bool> owns_;  // by stage: with Job::separate, weights that could be shared, or that
                            // counts_versions() is about
  std::vector<bool> room_taken_;       // by stage: a version is in the room for the next one
  std::vector<std::uint32_t> newest_;  // by stage
  std::vector<std::map<std::uint32_t, StageVersion>> past_;  // by stage and version
  std::vector<std::vector<Tensors>> memory_;  // by stage: StageVersion::memory of the newest
};

}  // namespace stageline::executor
