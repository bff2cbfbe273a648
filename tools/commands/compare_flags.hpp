// The flags of compare, which report takes, too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/answers/compared.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/perturbation_flags.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/report/page/page.hpp"
#include "tools/report/text/comparison.hpp"

namespace stageline::cli {

inline constexpr std::int64_t compare_scenarios = 1000;  // by default

struct CompareFlags {
  CommonFlags common;
  SvgFlags svg;
  std::string html;
  int top = 10;
  bool full = false;
  std::string columns;  // as typed
  std::string within;   // empty: 1%, or the best of rows that tie
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

/// The flags as values. `check`: what else the command refuses of the setting; may be null.
answers::ComparisonQuestion comparison_question(const CompareFlags& flags,
                                                const std::function<void(const Setting&)>& check);

/// What is shown of the rows.
report::ComparisonView view_of(const CompareFlags& flags, const answers::Comparison& found);

/// What must be known to read the rows, each once.
std::vector<std::string> notes_of(const CompareFlags& flags, const answers::Comparison& found);

/// By row, the command that simulates it.
std::vector<std::string> row_commands(const CompareFlags& flags, const answers::Comparison& found);

/// The rows as JSON, and the page.
std::string comparison_json(const answers::Comparison& found);
report::Page comparison_page(const CompareFlags& flags, const answers::Comparison& found);

}  // namespace stageline::cli
