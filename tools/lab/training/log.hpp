// The record of a training run: its settings, its losses and accuracies, and the simulated time of
// each of its steps. Written by stageline-train, read by `stageline time-to-accuracy`; needs no
// LibTorch.
//
// A *step* is one optimizer step: one mini-batch of an asynchronous schedule, all micro-batches of
// a step of a flushed one. Step k (from 1) ends when the last stage has made its k-th update.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/versions.hpp"
#include "sim/base/units.hpp"

namespace stageline {
class JsonNode;
}  // namespace stageline

namespace stageline::lab {

/// The staleness of one stage's weights while the pipeline ran.
struct LoggedStage {
  int first_layer = 0;        // index in model order
  int last_layer = 0;         // index in model order, inclusive
  std::int64_t weights = 0;   // elements
  double staleness_mean = 0;  // updates; over all micro-batches, warm-up included
  double staleness_max = 0;   // the steady value
  friend bool operator==(const LoggedStage&, const LoggedStage&) = default;
};

/// The settings that identify a run, but for its seed. Runs with equal settings are repetitions.
struct TrainingSettings {
  std::string model;      // "resnet20,width=4"
  std::string trace;      // source of the steps' times, as typed: "model:lenet5@h100", "lenet5-cpu"
  std::string schedule;   // with all knobs: "stale_weights:mapping=paired"
  std::string partition;  // as typed: "ppv:7"
  std::string weights;    // the version rule, by name: "latest"
  std::string correction;      // "none", "moving_average", "weight_prediction+spike_compensation"
  int devices = 1;             // of the pipeline
  int microbatches = 1;        // of one step: 1 where every mini-batch is a step
  int batch = 1;               // samples in a micro-batch
  std::string data;            // "digits,train=6000,test=1000"
  std::string optimizer;       // "momentum"
  std::string recipe;          // the optimizer's settings as text: "rate 0.05, momentum 0.9, …"
  std::string number_format;   // "fp32"
  std::int64_t steps = 0;      // of the whole training
  std::int64_t pipelined = 0;  // steps through the pipeline, which then drains; the others are
                               // trained on one device, one after the other
  friend bool operator==(const TrainingSettings&, const TrainingSettings&) = default;
};

/// The loss of one step: the mean over its samples, before its update.
struct LoggedStep {
  Time end{};       // simulated
  double loss = 0;  // NaN: the training has diverged
  friend bool operator==(const LoggedStep&, const LoggedStep&) = default;
};

/// The test set's result with the weights that all stages have after `step` updates (0: initial).
struct Evaluation {
  std::int64_t step = 0;
  Time end{};           // simulated end of that step
  double loss = 0;      // mean over the samples
  double accuracy = 0;  // share of the samples, from 0 to 1
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

struct TrainingLog {
  TrainingSettings settings;
  std::uint64_t seed = 1;
  std::string mode;                     // "pipelined", "delayed"
  std::vector<LoggedStage> stages;      // in model order
  std::vector<std::string> software;    // "LibTorch 2.13.0", …
  std::string command;                  // as typed
  std::string date;                     // "2026-11-22"
  double wall_seconds = 0;              // of the training on this machine, evaluation included
  std::vector<LoggedStep> steps;        // settings.steps of them; fewer if interrupted
  std::vector<Evaluation> evaluations;  // by ascending step

  /// The share of weights in stages with staleness above 0: "percentage of stale weights" (Zhang
  /// and Abdelrahman, arXiv 1912.12675). 0 where nothing is pipelined.
  double stale_share() const;
  friend bool operator==(const TrainingLog&, const TrainingLog&) = default;
};

inline constexpr std::string_view training_format = "stageline-training 1";

/// JSON, "format": training_format; tools/lab/training/README.md lists the keys. Times in
/// picoseconds; a NaN loss is null.
std::string to_json(const TrainingLog& log);
/// Throws TraceError with file and JSON pointer.
TrainingLog parse_training_log(const std::string& text, const std::string& file);

/// The same without `steps`, for a document that holds many logs: of the curves only the
/// evaluations remain. `columns`: the indentation of all lines but the first.
std::string without_steps(const TrainingLog& log, std::size_t columns);
/// Reads the output of without_steps(); `log.steps` is empty. Throws TraceError with the JSON
/// pointer.
TrainingLog read_without_steps(const JsonNode& node);

/// One line per step: step, samples, simulated seconds, loss, and at an evaluation its loss and
/// accuracy (else empty).
std::string to_csv(const TrainingLog& log);

}  // namespace stageline::lab
