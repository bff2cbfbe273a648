// The progress of a training on standard error: one line, rewritten on a terminal; elsewhere a line
// for each evaluation.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tools/executor/train/trainer.hpp"

namespace stageline::executor {

class ProgressLine {
 public:
  /// `steps` of `samples` images each.
  ProgressLine(bool wanted, std::int64_t steps, int samples);

  void operator()(const TrainingProgress& progress);
  /// Leaves the line.
  void end() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string bar(std::int64_t step) const;
  std::string line(const TrainingProgress& progress, Clock::time_point now) const;

  bool wanted_;
  bool terminal_;
  std::int64_t steps_;
  int samples_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point said_;
  std::int64_t looked_at_ = 0;
};

}  // namespace stageline::executor
