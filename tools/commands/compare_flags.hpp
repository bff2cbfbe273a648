// The flags of compare, which report takes, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/commands/case_flags.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/report/text/comparison.hpp"

namespace stageline {

inline constexpr std::int64_t compare_scenarios = 1000;  // by default

struct CompareFlags {
  CommonFlags common;
  SvgFlags svg;
  std::string html;
  int top = 10;
  bool full = false;
  std::string columns;  // as typed
  std::string within;   // empty: 1%
  int jobs = 0;
  bool no_changes = false;
  PerturbationFlags perturbations;
  std::string by;
  std::string why;
  std::vector<Flag> all_flags;
};

/// The flags of the question, and how its answer is ordered; none of those that say where it goes.
/// `flags` must outlive the command.
void add_compare_flags(Flags command, CompareFlags& flags);
/// --columns and --no-changes.
void add_compare_table_flags(Flags command, CompareFlags& flags);

/// What is shown of the rows, without their scenarios and cuts.
ComparisonView view_of(const CompareFlags& flags, const Setting& setting);

}  // namespace stageline
