#include "tools/report/text/profiled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/analysis/statistics.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/step_parts.hpp"

namespace stageline::report {
namespace {

std::string run_line(const answers::ProfiledRun& found) {
  const Program& program = found.run.program;
  std::vector<Time> steps = found.steps;
  std::sort(steps.begin(), steps.end());
  std::string text = fmt::format("measured: {} rank{} · {} step{} of {} micro-batches · ",
                                 found.ranks.size(), found.ranks.size() == 1 ? "" : "s",
                                 steps.size(), steps.size() == 1 ? "" : "s", program.microbatches);
  const Time median = steps[(steps.size() - 1) / 2];
  text += fmt::format("a step {}", print(median));
  if (steps.size() > 1) {
    text += fmt::format(" in the median ({} to {})", print(steps.front()), print(steps.back()));
  }
  text += "\n";
  return found.longest.empty() ? text : text + found.longest + "\n";
}

std::string ranks_table(const answers::ProfiledRun& found, int width) {
  std::vector<Column> columns{{"rank", true}};
  columns.front().key = true;
  for (const answers::StepPart& part : found.parts) columns.push_back({part.name});
  columns.push_back({"late"});
  std::vector<std::vector<std::string>> rows;
  for (const answers::ProfiledRank& rank : found.ranks) {
    const auto share = [&](Time time) {
      return percent(rank.whole > Time{} ? fraction_of(time, rank.whole) : 0);
    };
    std::vector<std::string> row{rank.name};
    for (const Time time : rank.parts) row.push_back(share(time));
    row.push_back(share(rank.late));
    rows.push_back(std::move(row));
  }
  return table(columns, rows, width);
}

std::string links_table(const answers::ProfiledRun& found, int width) {
  if (found.links.empty()) return "";
  const bool sizes = std::any_of(found.links.begin(), found.links.end(),
                                 [](const auto& link) { return link.bytes > Bytes{}; });
  std::vector<Column> columns{
      {"from", true}, {"to", true}, {"messages"}, {"median"}, {"of 9 in 10"}};
  if (sizes) {
    columns.push_back({"bytes"});
    columns.push_back({"rate"});
  }
  std::vector<std::vector<std::string>> rows;
  for (const answers::MeasuredLink& link : found.links) {
    rows.push_back({link.from, link.to, fmt::format("{}", link.messages), print(link.median),
                    print(link.most)});
    if (!sizes) continue;
    const double rate = link.bytes_per_second();
    rows.back().push_back(bytes_text(link.bytes, rate > 0));
    rows.back().push_back(rate > 0 ? fmt::format("{:.3g} GB/s", rate / 1e9) : "unknown");
  }
  std::string text = "\nmessages, from when both ends were there until they arrived\n\n";
  return text + table(columns, rows, width);
}

}  // namespace

std::string profiled_text(const answers::ProfiledRun& found, int width) {
  std::string text = wrapped(run_line(found), width) + "\n";
  text += step_parts_table(found.parts, Time{}, width);
  text += wrapped(first_changes(found.parts), width);
  text += "\nshares of each rank's time; late: free, with its inputs there, before an op began\n\n";
  return text + ranks_table(found, width) + links_table(found, width);
}

}  // namespace stageline::report
