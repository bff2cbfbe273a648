// stageline compare: a row a schedule, the synchronous ones first, and who wins and why.
#include <fmt/format.h>

#include <memory>

#include "sim/errors.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "tools/files.hpp"
#include "tools/outcome_json.hpp"
#include "tools/table.hpp"

namespace stageline {
namespace {

std::string fit_text(const Outcome& outcome) {
  switch (outcome.fit) {
    case Fit::yes:
      return "yes";
    case Fit::no:
      return "NO";
    case Fit::unknown:
      return "unknown";
  }
  return "";
}

std::string staleness_text(const Outcome& outcome) {
  return fmt::format("{:g}{}", outcome.staleness_max(), outcome.consistent() ? "" : " F≠B");
}

Synchrony block_of(const Row& row) {
  return row.outcome ? row.outcome->synchrony : row.asked.spec.scheduler->synchrony;
}

std::string block(const std::vector<Row>& rows, const std::vector<Outcome>& outcomes,
                  Synchrony synchrony, bool sweep) {
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].synchrony == synchrony) of.push_back(i);
  }
  std::string text =
      synchrony == Synchrony::synchronous
          ? "Synchronous (one update a step, as plain training)\n"
          : "Asynchronous (updates on stale weights; a step is as many mini-batches)\n";
  std::vector<Column> columns{{"schedule", true}};
  if (sweep) columns.push_back({"devices"});
  for (const char* const title :
       {"step", "throughput", "speed-up", "bubble", "exposed comm", "peak memory"}) {
    columns.push_back({title});
  }
  columns.push_back({"on", true});
  columns.push_back({"versions"});
  columns.push_back({"staleness"});
  columns.push_back({"fits", true});
  const Ranked ranked = rank(outcomes, of);
  std::vector<std::vector<std::string>> cells;
  for (const std::size_t i : ranked.order) {
    const Outcome& outcome = outcomes[i];
    const auto device = static_cast<std::size_t>(outcome.peak_device());
    std::vector<std::string> row{outcome.schedule};
    if (sweep) row.push_back(fmt::format("{}", outcome.devices));
    row.push_back(print(outcome.step_time));
    row.push_back(fmt::format("{:.5g} {}", outcome.throughput, outcome.throughput_unit));
    row.push_back(fmt::format("{:.2f}×", outcome.speedup));
    row.push_back(percent(outcome.bubble_fraction));
    row.push_back(percent(outcome.exposed_communication));
    row.push_back(print(outcome.memory.device[device].peak));
    row.push_back(outcome.program.devices[device]);
    row.push_back(fmt::format("{}", outcome.versions_peak()));
    row.push_back(staleness_text(outcome));
    row.push_back(fit_text(outcome));
    cells.push_back(std::move(row));
  }
  if (!cells.empty()) text += table(columns, cells);
  for (const Row& row : rows) {
    if (row.outcome || block_of(row) != synchrony) continue;
    text += fmt::format(
        "{}{}: not possible: {}\n", row.schedule,
        sweep ? fmt::format(" on {} devices", row.asked.cluster.devices.size()) : "", row.why_not);
  }
  if (!ranked.sentence.empty()) text += "→ " + ranked.sentence + "\n";
  return text;
}

// An infeasible candidate is a row; bad input (the same for every row) is an error.
std::vector<Row> run_all(const CommonFlags& flags, const Setting& setting) {
  std::vector<Row> rows;
  std::string last_error;
  for (const int devices : setting.device_counts) {
    for (const ScheduleSpec& spec : all_schedules(flags)) {
      Row row{make_case(flags, setting, spec, devices), spelled(spec), std::nullopt, ""};
      try {
        row.outcome = study(row.asked);
      } catch (const UsageError& error) {
        row.why_not = last_error = error.what();
      }
      rows.push_back(std::move(row));
    }
  }
  for (const Row& row : rows) {
    if (row.outcome) return rows;
  }
  throw UsageError(last_error);
}

int compare(const CommonFlags& flags) {
  const Setting setting = read_setting(flags);
  std::vector<Row> rows = run_all(flags, setting);
  bool fits = false;
  for (const Row& row : rows) fits = fits || (row.outcome && row.outcome->fit != Fit::no);
  const int answer = fits ? 0 : 1;
  if (!flags.json.empty()) write_file(flags.json, rows_json(setting, rows));
  if (flags.json == "-") return answer;

  const bool sweep = setting.device_counts.size() > 1;
  std::vector<Outcome> outcomes;
  bool any[2] = {false, false};
  for (const Row& row : rows) {
    any[static_cast<std::size_t>(block_of(row))] = true;
    if (row.outcome) outcomes.push_back(*row.outcome);
  }
  if (!flags.quiet) fmt::print("{}", heading(setting, rows.front().asked, sweep));
  for (const Synchrony synchrony : {Synchrony::synchronous, Synchrony::asynchronous}) {
    if (!any[static_cast<std::size_t>(synchrony)]) continue;
    fmt::print("\n{}", block(rows, outcomes, synchrony, sweep));
  }
  if (flags.quiet) return answer;
  std::vector<std::string> said = notes(setting);
  for (const Outcome& outcome : outcomes) {
    if (!outcome.consistent()) {
      said.push_back(outcome.schedule + ": F≠B: backwards read other weights than their forwards");
    }
    if (!outcome.settled) {
      said.push_back(outcome.schedule + ": no exact rhythm was found; its step is a mean");
    }
  }
  for (std::size_t i = 0; i < said.size(); ++i) {
    fmt::print("{}note: {}\n", i == 0 ? "\n" : "", said[i]);
  }
  return answer;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("compare", "Compare schedules (the main job)");
  const auto flags = std::make_shared<CommonFlags>();
  add_case_flags(*command, *flags, Many::yes);
  command->footer(
      "Example:\n  stageline compare model:resnet50@h100,batch=32 --devices 8 --microbatches 64\n"
      "ranks all schedules on 8 H100s. Exit code 1: none fits into the memory.");
  command->callback([flags, &exit_code] { exit_code = compare(*flags); });
}

}  // namespace stageline
