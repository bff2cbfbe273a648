// Writes the diff of two programs as text and JSON.
#include "tools/report/text/diff.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/analysis/statistics.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"

namespace stageline::report {
namespace {

std::string op_or_end(const std::optional<Op>& op) {
  return op ? print(*op) : "the end of the list";
}

std::string list_of(const std::vector<Op>& ops) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ops.size(), most); ++i) text += " " + print(ops[i]);
  return text + (ops.size() > most ? " …" : "");
}

std::string where_text(const ProgramDiff& diff) {
  if (!diff.first) return "the lists of ops are equal\n";
  const FirstDifference& first = *diff.first;
  return fmt::format(
      "{} differs first, at op {} of its list: {} | {}\n  first:  {}\n  second: {}\n",
      diff.device[first.device].name, first.position + 1, op_or_end(first.first),
      op_or_end(first.second), first.first_context, first.second_context);
}

std::string counts_text(const ProgramDiff& diff, int width) {
  std::string text = fmt::format("{} of {} ops differ: {} in another order, {} on another device",
                                 diff.differing(), diff.ops, diff.reordered, diff.elsewhere);
  if (diff.repaired > 0) text += fmt::format(", {} overlapped otherwise", diff.repaired);
  text += "\n";
  if (!diff.only_first.empty()) {
    text += fmt::format("only in the first ({}):{}\n", diff.only_first.size(),
                        list_of(diff.only_first));
  }
  if (!diff.only_second.empty()) {
    text += fmt::format("only in the second ({}):{}\n", diff.only_second.size(),
                        list_of(diff.only_second));
  }
  std::vector<std::vector<std::string>> rows;
  for (const DeviceDiff& device : diff.device) {
    rows.push_back({device.name, fmt::format("{}", device.first_ops),
                    fmt::format("{}", device.second_ops), fmt::format("{}", device.differ),
                    device.position ? fmt::format("{}", *device.position + 1) : "-"});
  }
  return text + "\n" +
         table({{"device", true}, {"ops, first"}, {"ops, second"}, {"differ"}, {"first at op"}},
               rows, width);
}

std::string times_text(const answers::DiffReport& report, int width) {
  std::string why;
  for (const std::string& sentence : report.untimed) why += "\n" + sentence + "\n";
  if (!report.first && !report.second) return why;
  const auto cell = [](const std::optional<answers::SideTimes>& side, auto&& time) {
    return side ? print(time(*side)) : std::string("-");
  };
  const auto row = [&](const std::string& what, auto&& time) {
    std::vector<std::string> cells{what, cell(report.first, time), cell(report.second, time), "-",
                                   "-"};
    if (report.first && report.second) {
      const Time a = time(*report.first);
      const Time b = time(*report.second);
      cells[3] = signed_time(b - a);
      if (a > Time{}) {
        const double share = fraction_of(b - a, a);
        cells[4] = (share > 0 ? "+" : "") + percent(share);
      }
    }
    return cells;
  };
  std::vector<std::vector<std::string>> rows;
  rows.push_back(row("makespan", [](const answers::SideTimes& side) { return side.makespan; }));
  rows.push_back(row("step", [](const answers::SideTimes& side) { return side.step_time; }));
  for (std::size_t d = 0; d < report.diff.device.size(); ++d) {
    const DeviceDiff& device = report.diff.device[d];
    const auto busy = [&](const answers::SideTimes& side) {
      const int at = &side == &*report.first ? device.first : device.second;
      const bool there = at >= 0 && as_size(at) < side.busy.size();
      return there ? nth(side.busy, at) : Time{};
    };
    rows.push_back(row(report.diff.device[d].name + " busy", busy));
    rows.push_back(row(report.diff.device[d].name + " idle",
                       [&](const answers::SideTimes& side) { return side.makespan - busy(side); }));
  }
  return fmt::format("\n{}", report.costs.empty() ? "" : "times: " + report.costs + "\n") +
         table({{"", true}, {"first"}, {"second"}, {"difference"}, {"of the first"}}, rows, width) +
         why;
}

}  // namespace

std::string diff_text(const answers::DiffReport& report, int width) {
  const ProgramDiff& diff = report.diff;
  std::string text =
      fmt::format("first:  {}\nsecond: {}\n\n", report.first_name, report.second_name);
  if (diff.equal()) {
    text += fmt::format("equal: {} ops on {} device{}\n", diff.ops, diff.device.size(),
                        diff.device.size() == 1 ? "" : "s");
  } else {
    for (const std::string& line : diff.settings) text += line + "\n";
    text += where_text(diff) + counts_text(diff, width);
  }
  return text + times_text(report, width);
}

}  // namespace stageline::report
