// Declares the flags of a comparison, and makes its question and its forms of them.
#include "tools/commands/compare_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/typed.hpp"
#include "tools/commands/why_flags.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/compared_page.hpp"
#include "tools/report/text/compared.hpp"

namespace stageline::cli {
namespace {

constexpr int language_width = 100;  // columns of tables of language models, if not on a terminal

// Throws UsageError unless there are two schedules on one number of devices.
void check_two(std::size_t schedules, const Setting& setting) {
  if (setting.device_counts.size() > 1) {
    throw UsageError(fmt::format(
        "--why puts two schedules on one number of devices side by side, but there are {} numbers",
        setting.device_counts.size()));
  }
  if (schedules == 2) return;
  throw UsageError(fmt::format(
      "--why puts two schedules side by side, but there {} {}; give --schedule 1f1b,zb_h1",
      schedules == 1 ? "is" : "are", schedules));
}

// Empty: those that fit.
std::vector<std::string> shown_columns(const CompareFlags& flags) {
  if (!flags.columns.empty()) return report::parse_comparison_columns(flags.columns);
  return flags.full ? report::parse_comparison_columns("all") : std::vector<std::string>{};
}

}  // namespace

void add_compare_flags(Flags command, CompareFlags& flags) {
  add_case_flags(command, flags.common, Many::yes, Many::yes, Given::no, Many::yes);
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
                "fastest; default: 1%, or where language models tie that with the least time × "
                "memory");
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
          fmt::join(report::comparison_columns(), ", "),
          fmt::join(report::comparison_columns_left_out(), ", ")));
  command.in(SettingGroup::search)
      .flag("--no-changes", flags.no_changes,
            "where nothing fits into memory, search no change that would, which takes a second "
            "or two");
}

answers::ComparisonQuestion comparison_question(const CompareFlags& flags,
                                                const std::function<void(const Setting&)>& check) {
  answers::ComparisonQuestion question;
  if (!flags.within.empty()) question.within = parse_within(flags.within, "--within");
  question.scenarios = scenarios_of(flags.perturbations, compare_scenarios, false);
  const bool uncertain = !question.scenarios.perturbation.none();
  question.setting = request_of(flags.common);
  question.setting.replicas_vary = uncertain;
  std::vector<ScheduleSpec>& schedules = question.setting.schedules;
  if (schedules.empty()) schedules = parse_schedules("all");
  question.why = why_order(flags.why);
  question.by = parse_rank_by(flags.by, "--by", uncertain);
  if (!flags.within.empty() && question.by != RankBy{}) {
    throw UsageError(fmt::format(
        "--within has nothing to apply to, since {} ranks the schedules, whatever memory they take; "
        "give --by time, or leave it out",
        name(question.by)));
  }
  question.budget = typed_budget(flags.common);
  question.workers = flags.jobs;
  question.keep = question.why ? Keep::spans : Keep::facts;
  question.changes = !flags.no_changes;
  question.check = [&flags, check, why = question.why.has_value(),
                    schedules = schedules.size()](const Setting& setting) {
    if (why) check_two(schedules, setting);
    if (check) check(setting);
    shown_columns(flags);
    budget_of(flags.common, setting.model);
  };
  return question;
}

report::ComparisonView view_of(const CompareFlags& flags, const answers::Comparison& found) {
  const Model& model = found.setting.model;
  report::ComparisonView view;
  view.width = model.tokens > 0 ? text_width_or(language_width) : text_width();
  view.budget = typed_budget(flags.common);
  view.top = flags.full ? 0 : as_size(flags.top);
  view.columns = shown_columns(flags);
  view.known_only = view.columns == report::parse_comparison_columns("all");
  view.sweep = found.sweep();
  view.by = parse_rank_by(flags.by, "--by", !found.uncertain.empty());
  return report::with_rows(std::move(view), found);
}

std::vector<std::string> notes_of(const CompareFlags& flags, const answers::Comparison& found) {
  return report::compared_notes(found, view_of(flags, found),
                                read_as_notes(flags.common.schedules));
}

// The numbers that programs beside the row have said, where no flag does.
std::string counts_of_programs(const CompareFlags& flags, const answers::Comparison& found,
                               const Row& row) {
  const bool any = std::any_of(found.rows.begin(), found.rows.end(),
                               [](const Row& one) { return one.asked.spec().given != nullptr; });
  std::string text;
  if (!any) return text;
  if (!flags.common.given("devices"))
    text += fmt::format(" --devices {}", row.asked.device_count());
  if (!flags.common.given("microbatches")) {
    text += fmt::format(" --microbatches {}", row.asked.microbatches());
  }
  return text;
}

// Values that a row has of its own are said by it.
std::vector<std::string> row_commands(const CompareFlags& flags, const answers::Comparison& found) {
  const bool sweep = found.sweep();
  const std::string typed =
      typed_setting(flags.common, flags.all_flags, {SettingOf::ranks, SettingOf::row},
                    sweep ? std::vector<std::string>{} : std::vector<std::string>{"devices"});
  std::vector<std::string> commands;
  for (const Row& row : found.rows) {
    std::string command = fmt::format("stageline simulate {} --schedule {}", typed,
                                      shell_word(spelled(row.asked.spec())));
    command += counts_of_programs(flags, found, row);
    if (sweep) command += fmt::format(" --devices {}", row.asked.device_count());
    if (!flags.common.texts("partition").empty()) {
      command += " --partition " + shell_word(row.asked.cut_asked());
    }
    if (flags.common.texts("recompute").size() > 1) {
      command += " --recompute " + shell_word(print(row.asked.recomputation()));
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string comparison_json(const answers::Comparison& found) {
  return report::rows_json(found.setting, found.rows,
                           {found.uncertain, found.both, &found.ways, found.tied});
}

report::Page comparison_page(const CompareFlags& flags, const answers::Comparison& found) {
  return report::compared_page(found, view_of(flags, found), row_commands(flags, found),
                               notes_of(flags, found));
}

}  // namespace stageline::cli
