// What a training printed of its steps: Megatron-LM, NeMo, torchtitan, DeepSpeed and the Trainer of
// Hugging Face's transformers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

/// A line of the log; 0: it does not say so.
struct PrintedStep {
  std::int64_t number = 0;
  double seconds = 0;
  std::int64_t samples = 0;  // of one update, all replicas together
  double device_tokens = 0;  // a second, of one device
  double device_flops = 0;   // a second, of one device, as the framework counts them
  double memory = 0;         // bytes, the most that the device had allocated
  std::int64_t skipped = 0;  // updates that were left out, mostly for an overflow in fp16
  int line = 0;
};

struct PrintedLog {
  std::string framework;  // "Megatron-LM"
  std::vector<PrintedStep> steps;
  /// The steps of one line are one mean over all of a run, its first steps included.
  bool mean_of_run = false;
};

/// Throws TraceError, with the line, for text that is no such log, and where the number of a step
/// is below the one before: the run began again.
PrintedLog read_printed_log(const std::string& text, const std::string& file);

/// Medians and sums of the steps after the warm-up; 0 where no line says it.
struct LogSummary {
  std::size_t steps = 0;    // lines that count
  std::size_t warm_up = 0;  // lines before them
  double seconds = 0;       // of a step
  double least = 0;
  double most = 0;
  std::int64_t samples = 0;
  double device_tokens = 0;
  double device_flops = 0;
  double memory = 0;         // the most
  std::int64_t skipped = 0;  // in all of the log
};

/// Medians. The warm-up is the first line and those after it that are half as long again as the
/// median of the rest. Throws TraceError where only one step is left, or the batch changes.
LogSummary summary_of(const PrintedLog& log, const std::string& file);

/// What must be known to read the summary, a sentence each.
std::vector<std::string> log_notes(const PrintedLog& log, const LogSummary& summary);

}  // namespace stageline
