// What a training run leaves behind: its settings, its losses and accuracies, and the simulated
// time of each of its steps. Written by stageline-train, read by `stageline time-to-accuracy`;
// needs no LibTorch.
//
// A *step* is one optimizer step: of an asynchronous schedule one mini-batch, of a flushed one all
// micro-batches of a step. The k-th (from 1) ends when the last stage to do so has made its update.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/versions.hpp"
#include "sim/units.hpp"

namespace stageline {

class JsonNode;

/// How stale one stage's weights were while the pipeline ran.
struct LoggedStage {
  int first_layer = 0;        // in order of the model
  int last_layer = 0;         //
  std::int64_t weights = 0;   // elements
  double staleness_mean = 0;  // updates; over all micro-batches, warm-up included
  double staleness_max = 0;   // the steady value
  friend bool operator==(const LoggedStage&, const LoggedStage&) = default;
};

/// What makes a run what it is, but for its seed. Two logs with equal settings are repetitions.
struct TrainingSettings {
  std::string model;           // "resnet20,width=4"
  std::string trace;           // as typed: what priced the steps; "model:lenet5@h100", "lenet5-cpu"
  std::string schedule;        // with all knobs: "stale_weights:mapping=paired"
  std::string partition;       // as typed: "ppv:7"
  std::string weights;         // the version rule, by name: "latest"
  std::string correction;      // "none", "moving_average", "weight_prediction+spike_compensation"
  int devices = 1;             //
  int microbatches = 1;        // of one step: 1 where every mini-batch is a step
  int batch = 1;               // samples in a micro-batch
  std::string data;            // "digits,train=6000,test=1000"
  std::string optimizer;       // "momentum"
  std::string recipe;          // the rest of it in words: "rate 0.05, momentum 0.9, …"
  std::string number_format;   // "fp32"
  std::int64_t steps = 0;      // of the whole training
  std::int64_t pipelined = 0;  // of these, through the pipeline; then it drains, and the rest is
                               // trained on one device, a step after the other
  friend bool operator==(const TrainingSettings&, const TrainingSettings&) = default;
};

/// The loss of one step: the mean over its samples, before its update.
struct LoggedStep {
  Time end{};       // simulated
  double loss = 0;  // NaN: it has diverged
  friend bool operator==(const LoggedStep&, const LoggedStep&) = default;
};

/// The test set under the weights that all stages had after `step` updates (0: before the first).
struct Evaluation {
  std::int64_t step = 0;
  Time end{};           // simulated: of that step
  double loss = 0;      // mean over the samples
  double accuracy = 0;  // share of the samples, from 0 to 1
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

struct TrainingLog {
  TrainingSettings settings;
  std::uint64_t seed = 1;
  std::string mode;                     // "pipelined", "delayed"
  std::vector<LoggedStage> stages;      //
  std::vector<std::string> software;    // "LibTorch 2.13.0", …
  std::string command;                  // as typed
  std::string date;                     // "2026-11-22"
  double wall_seconds = 0;              // what training itself took here, evaluation included
  std::vector<LoggedStep> steps;        // settings.steps of them; fewer: interrupted
  std::vector<Evaluation> evaluations;  // by step, rising

  /// Weights in stages whose staleness is above 0, of all: "percentage of stale weights" (Zhang
  /// and Abdelrahman, arXiv 1912.12675). 0 where nothing is pipelined.
  double stale_share() const;
  friend bool operator==(const TrainingLog&, const TrainingLog&) = default;
};

/// JSON, "format": "stageline-training 1"; tools/training/README.md has the keys. Times in
/// picoseconds; a loss that is no number is null.
std::string to_json(const TrainingLog& log);
/// Throws TraceError with file and JSON pointer.
TrainingLog parse_training_log(const std::string& text, const std::string& file);

/// The same without `steps`, for a document that holds many logs: only looks at the test set are
/// left of what was learned. `columns`: how far all lines but the first are moved to the right.
std::string without_steps(const TrainingLog& log, std::size_t columns);
/// Reads that; `log.steps` is empty. Throws TraceError with the JSON pointer.
TrainingLog read_without_steps(const JsonNode& node);

/// A line a step: step, samples, simulated seconds, loss, and where the test set was looked at its
/// loss and accuracy (else empty).
std::string to_csv(const TrainingLog& log);

}  // namespace stageline
