// In a run that is part of a training: which versions of the weights the passes of one device read,
// and which of them will not be read any more.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/executor/run/job.hpp"

namespace stageline::executor {

class PlannedVersions {
 public:
  /// Without a plan in the job, no version is planned and the run begins at version 0.
  PlannedVersions(const Job& job, int device);

  /// The op's micro-batch, counted from the beginning of the training.
  std::uint32_t microbatch_of(Op op) const { return first_microbatch_ + op.microbatch; }
  /// The version that a pass reads. Nothing: there is no plan, or the op reads no weights.
  std::optional<std::uint32_t> version_of(Op op) const;
  /// The stage's newest version when the run begins.
  std::uint32_t at_start(std::size_t stage) const { return at_start_[stage]; }

  /// After each pass, in the order of the program.
  void note_pass(int stage) { ++nth(passes_done_, stage); }
  /// The oldest version that a pass here or a state to be shown may still need. With a plan only.
  std::uint32_t oldest_needed(int stage, std::uint32_t newest) const;
  /// The same for all devices: micro-batches from the given update on.
  std::uint32_t oldest_read_after(int stage, std::uint32_t update) const;

 private:
  const Job& job_;
  std::uint32_t first_microbatch_ = 0;                   // of the program, in its training
  std::vector<std::uint32_t> at_start_;                  // by stage
  std::vector<std::vector<std::uint32_t>> oldest_read_;  // by stage: by the passes from here on
  std::vector<std::size_t> passes_done_;                 // by stage
};

}  // namespace stageline::executor
