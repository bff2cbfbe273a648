// A training from its first step to its last: its pipelined and plain phases, evaluations on the
// way, checkpoints. See tools/executor/README.md.
//
//     step   0 …                            pipelined │ …                               steps
//            ├ a program's delays: on several devices │ plain steps on one device, ─────┤
//            │ for real, or delayed on one            │ from the weights that all stages
//            │                                        │ have when the pipeline is empty
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/train/batches.hpp"
#include "tools/executor/train/recipe.hpp"
#include "tools/executor/train/training_state.hpp"
#include "tools/lab/training/log.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {

/// How passes come to read a program's stale weights.
enum class TrainingMode : std::uint8_t {
  delayed,    // on one device, one pass after the other, from a history of the weights
  pipelined,  // by the executor, on as many devices as the program has
};
std::string_view name(TrainingMode mode);

struct TrainingRequest {
  Case asked;         // trace, cluster, schedule, cut; microbatches of a step that gathers
  std::string trace;  // as typed, for the log
  ModelShape shape;   //
  std::string model;  // as typed, for the log
  Optimizer optimizer = Optimizer::momentum;
  at::ScalarType dtype = at::kFloat;
  Recipe recipe;               // with the number of steps
  std::int64_t pipelined = 0;  // of these
  std::vector<const Correction*> corrections;
  std::uint64_t seed = 1;  // of weights, and of the order of the data
  const lab::DataSource* data = nullptr;
  lab::Augmentation augmentation;
  TrainingMode mode = TrainingMode::delayed;
  std::vector<Accelerator> devices;   // pipelined: of the program; the first trains all else
  std::int64_t evaluate_every = 100;  // steps; rounded up to whole rounds of replicas
  std::string checkpoint;             // file; empty: none
  std::int64_t checkpoint_every = 0;  // steps; 0: at the end alone
  bool resume = false;                // go on from the checkpoint, where there is one
  /// Called before a checkpoint is written and after it; empty: not called.
  std::function<void()> before_checkpoint, after_checkpoint;
};

/// Reported after each step and each evaluation.
struct TrainingProgress {
  std::int64_t step = 0;
  double loss = 0;
  const lab::Evaluation* evaluation = nullptr;  // the latest
  std::int64_t resumed_at = 0;                  // the step that the run began with
};

struct TrainingResult {
  lab::TrainingLog log;  // without command, date and software
  TrainingState state;   // at the end
  Partition partition;   // of its stages
  std::string digest;    // of the final weights
};

/// Trains. Throws UsageError for what does not go together, and for a checkpoint of another
/// training (with the first setting that differs); Stopped when `stop` is set, in an evaluation,
/// too: then what the last checkpoint holds is on disk.
TrainingResult train(const TrainingRequest& request,
                     const std::function<void(const TrainingProgress&)>& tell,
                     const std::atomic<bool>* stop = nullptr);

}  // namespace stageline::executor
