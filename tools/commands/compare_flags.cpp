// Declares the flags of a comparison.
#include "tools/commands/compare_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/index.hpp"
#include "tools/commands/terminal.hpp"

namespace stageline {
namespace {

constexpr int language_width = 100;  // columns of tables of language models, if not on a terminal

}  // namespace

void add_compare_flags(Flags command, CompareFlags& flags) {
  add_case_flags(command, flags.common, Many::yes, Many::yes);
  add_degree_flags(command, flags.common);
  add_setting(command, flags.common, "messages");
  add_budget_flags(command, flags.common);
  add_perturbation_flags(command, flags.perturbations, compare_scenarios);
  const Flags output = command.in(SettingGroup::output);
  output.common().option(
      "--by", flags.by,
      "rank by time, energy or cost, and with --jitter and the like by mean or a "
      "percentile; default: time, or p95");
  output.option("--within", flags.within,
                "recommend the least memory among schedules at most this much slower than the "
                "fastest; default: 1%");
  command.in(SettingGroup::search)
      .option("--jobs", flags.jobs,
              "rows that are simulated at a time; default: one a processor core. The answer is the "
              "same with any number")
      .range(1, 1024);
}

void add_compare_table_flags(Flags command, CompareFlags& flags) {
  const Flags output = command.in(SettingGroup::output);
  output.option(
      "--columns", flags.columns,
      fmt::format(
          "columns of the tables, a comma list of {}, or all; default: those that fit; on a "
          "narrow terminal these are left out, in this order: {}",
          fmt::join(comparison_columns(), ", "), fmt::join(comparison_columns_left_out(), ", ")));
  command.in(SettingGroup::search)
      .flag("--no-changes", flags.no_changes,
            "where nothing fits into memory, search no change that would, which takes a second "
            "or two");
}

ComparisonView view_of(const CompareFlags& flags, const Setting& setting) {
  const Model& model = setting.model;
  ComparisonView view;
  view.width = model.tokens > 0 ? text_width_or(language_width) : text_width();
  view.budget = budget_of(flags.common, model);
  view.top = flags.full ? 0 : as_size(flags.top);
  const std::vector<std::string> all = parse_comparison_columns("all");
  if (flags.full) view.columns = all;
  if (!flags.columns.empty()) view.columns = parse_comparison_columns(flags.columns);
  view.known_only = view.columns == all;
  view.sweep = setting.device_counts.size() > 1;
  return view;
}

}  // namespace stageline
