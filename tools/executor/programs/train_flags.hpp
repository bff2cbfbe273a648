// The flags of stageline-train, and the checks that need no more than the flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/case_flags.hpp"
#include "tools/executor/corrections/correction.hpp"
#include "tools/executor/train/recipe.hpp"

namespace stageline::executor {

/// As typed.
struct TrainFlags {
  cli::CommonFlags common;
  std::string model;
  std::string data;
  std::string dtype = "fp32";
  std::string optimizer;
  std::string correction = "none";
  std::string mode = "delayed";
  std::string device;
  Recipe recipe;
  std::int64_t epochs = 0;
  std::optional<std::int64_t> pipelined;
  std::uint64_t seed = 1;
  bool augment = false;
  std::int64_t evaluate_every = 0;
  std::string log;
  std::string csv;
  std::string weights_out;
  std::string checkpoint;
  std::int64_t checkpoint_every = 0;
  bool resume = false;
};

void add_flags(cli::Flags line, TrainFlags& flags);

/// The corrections of --correction; sets --weights where one of them has a rule. Throws UsageError
/// where the two contradict each other.
std::vector<const Correction*> corrections_of(const TrainFlags& flags, std::string& weights);

/// Throws UsageError for numbers that no training can have.
void check_recipe(const Recipe& recipe);

/// Throws UsageError where what is no text, or two outputs, would go to standard output.
void check_outputs(const TrainFlags& flags);

}  // namespace stageline::executor
