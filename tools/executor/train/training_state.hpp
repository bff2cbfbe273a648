// The state of a training between two steps: the contents of a checkpoint, and what is evaluated on
// the test set. Equal from the pipelined and from the delayed run.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "tools/executor/run/exchange.hpp"
#include "tools/executor/train/version_plan.hpp"

namespace stageline::executor {

/// One stage's share of a state.
struct StageState {
  std::uint32_t newest = 0;                        // the version after the step
  std::map<std::uint32_t, StageVersion> versions;  // the newest, and older ones still to be read
  std::vector<Tensors> optimizer;                  // by layer: LayerWeights::state
  std::vector<int> updates;                        // by layer: LayerWeights::updates
  /// Running statistics after the replica's last forward before the step's end; by replica, layer
  /// and op.
  std::vector<std::vector<Tensors>> statistics;
};

/// After `step` whole steps.
struct TrainingState {
  std::int64_t step = 0;
  std::vector<StageState> stage;
};

/// A step whose state a run shows when it has passed it. `whole`: with everything that resuming
/// from there takes; else only the newest weights and the statistics. Whole stops are at the end of
/// rounds (VersionPlan::round).
struct Stop {
  std::int64_t step = 0;
  bool whole = false;
};
using ShowState = std::function<void(TrainingState)>;

/// States that several workers fill, each its own part.
class StatesToShow {
 public:
  /// `stops` rise. `show` is called in the thread that puts in the last part, one call at a time.
  StatesToShow(const VersionPlan& plan, std::vector<Stop> stops, ShowState show);

  /// Stops before this one have been shown.
  std::size_t first() const { return first_; }
  std::size_t size() const { return awaited_.size(); }
  const Stop& stop(std::size_t which) const { return awaited_[which].stop; }
  /// A stage has two kinds of parts: its weights, and its statistics, of each replica.
  void put(std::size_t stop, const std::function<void(TrainingState&)>& part);

 private:
  struct Awaited {
    Stop stop;
    TrainingState state;
    int parts_left = 0;
  };
  std::mutex mutex_;
  std::vector<Awaited> awaited_;
  std::atomic<std::size_t> first_{0};
  ShowState show_;
};

/// The tensors of the model's layers that forwards change, by op.
std::vector<Tensors> statistics_of(const TensorModel& model,
                                   const std::vector<std::size_t>& layers);
void set_statistics(TensorModel& model, const std::vector<std::size_t>& layers,
                    const std::vector<Tensors>& statistics);

}  // namespace stageline::executor
