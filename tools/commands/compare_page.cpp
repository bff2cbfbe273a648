// Collects what the page of a comparison shows.
#include "tools/commands/compare_page.hpp"

#include <fmt/core.h>

#include "tools/base/text.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/typed.hpp"
#include "tools/report/page/comparison_page.hpp"
#include "tools/report/speedups.hpp"
#include "tools/report/text/heading.hpp"

namespace stageline {
namespace {

// By row. Values that a row has of its own are said by it.
std::vector<std::string> commands_of(const CompareFlags& flags, const Compared& compared) {
  const bool sweep = compared.question.sweep();
  const std::string typed =
      typed_setting(flags.common, flags.all_flags, {SettingOf::ranks, SettingOf::row},
                    sweep ? std::vector<std::string>{} : std::vector<std::string>{"devices"});
  std::vector<std::string> commands;
  for (const Row& row : compared.rows) {
    std::string command =
        fmt::format("stageline simulate {} --schedule {}", typed, shell_word(row.schedule));
    if (sweep) command += fmt::format(" --devices {}", row.asked.device_count());
    if (!flags.common.texts("partition").empty()) {
      command += " --partition " + shell_word(row.asked.cut_asked());
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

// The recommended row and the next of its block that fits; without one that fits, the first two.
std::vector<std::size_t> best_two(const Compared& compared) {
  if (!compared.both.empty()) return {0, 1};
  for (const RankedRows& order : compared.orders) {
    if (order.rows.empty()) continue;
    std::vector<std::size_t> best{order.recommended.value_or(order.rows.front())};
    const bool fits = compared.rows[best.front()].outcome->fit != Fit::no;
    for (const std::size_t row : order.rows) {
      if (row == best.front() || best.size() > 1) continue;
      if (!fits || compared.rows[row].outcome->fit != Fit::no) best.push_back(row);
    }
    return best;
  }
  return {};
}

}  // namespace

std::string compare_heading(const Compared& compared) {
  const Setting& setting = compared.question.setting;
  Case first = compared.rows.front().asked;
  first.partition = cuts_of(compared.rows);
  first.found_cut.reset();
  return compared.question.sweep() ? sweep_heading(setting, first, compared.rows.back().asked)
                                   : heading(setting, first);
}

Page compare_page(const CompareFlags& flags, const Compared& compared, const PageBeside& beside) {
  ComparisonReport report{compared.question.setting, compared.rows, compared.orders,
                          compared.view(), compare_heading(compared)};
  report.commands = commands_of(flags, compared);
  if (!beside.alone.empty()) report.advice.push_back(beside.alone);
  for (const std::string& sentence : beside.ways.sentences) {
    report.advice.push_back(sentence);
  }
  for (const Impossible& reason : impossible_rows(compared.rows)) {
    report.not_possible.push_back(reason.sentence(compared.question.sweep()));
  }
  report.waterfalls = compared.both;
  report.notes = compare_notes(flags, compared);
  for (const std::size_t row : best_two(compared)) {
    report.drawn.push_back(compared.rows[row].asked);
    report.outcomes.push_back(study(report.drawn.back(), Curves::all));
  }
  if (!beside.all || report.outcomes.empty() || compared.found.stopped)
    return comparison_page(report);
  if (report.waterfalls.empty()) {
    for (std::size_t i = 0; i < report.outcomes.size(); ++i) {
      report.waterfalls.push_back(
          {report.outcomes[i].schedule, waterfall_of(report.drawn[i], report.outcomes[i])});
    }
  }
  const Sensitivity found = sensitivity_of(report.drawn.front(), report.outcomes.front(),
                                           flags.jobs, &catch_signals(SecondSignal::ends));
  if (!found.effects.empty()) report.sensitivity = &found;
  return comparison_page(report);
}

}  // namespace stageline
