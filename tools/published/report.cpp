// Reports judged rows as text and Markdown.
#include "tools/published/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tools/base/table.hpp"
#include "tools/base/text.hpp"

namespace stageline {
namespace {

constexpr double gib = 1073741824.0;

constexpr std::string_view roles_note =
    "fitted: a constant was fitted to the row. calibrate: the file offers the row for calibration, "
    "so built-in constants may have been chosen with it in view. judged: no constant was taken "
    "from it. Deviations are predicted / measured - 1, their means and percentiles of absolute "
    "values.";

std::string step_text(double seconds) { return fmt::format("{:.4g} s", seconds); }
std::string memory_text(double bytes) { return fmt::format("{:.2f} GiB", bytes / gib); }

std::string or_blank(const std::optional<double>& value, std::string (*text)(double)) {
  return value ? text(*value) : "";
}

std::vector<std::string> cells_of(const std::vector<JudgedPoint>& judged, const PointGroup& group,
                                  const DeviationFigures& figures) {
  return {group.source,
          std::string(name(group.role)),
          fmt::format("{}", figures.rows),
          percent(figures.mean),
          percent(figures.median),
          percent(figures.p95),
          signed_share(figures.worst),
          judged[figures.worst_row].point.id,
          signed_share(figures.bias)};
}

const std::vector<Column> figure_columns_of_groups{{"source", true, 0, true},
                                                   {"role", true, 0, true},
                                                   {"rows"},
                                                   {"mean"},
                                                   {"median"},
                                                   {"95 %"},
                                                   {"worst"},
                                                   {"row"},
                                                   {"bias"}};

using CellRows = std::vector<std::vector<std::string>>;

// The groups with such a measurement, and a line for each role of several groups.
CellRows figure_rows(const std::vector<JudgedPoint>& judged, const PublishedSummary& summary,
                     Deviation deviation) {
  CellRows rows;
  for (const PointGroup& group : summary.groups) {
    const DeviationFigures& figures = deviation == Deviation::step ? group.step : group.memory;
    if (figures.rows > 0) rows.push_back(cells_of(judged, group, figures));
  }
  for (const PointRole role : all_point_roles) {
    PointGroup all;
    all.source = "all sources";
    all.role = role;
    int groups = 0;
    for (const PointGroup& group : summary.groups) {
      const DeviationFigures& figures = deviation == Deviation::step ? group.step : group.memory;
      if (group.role != role || figures.rows == 0) continue;
      ++groups;
      all.rows.insert(all.rows.end(), group.rows.begin(), group.rows.end());
    }
    if (groups < 2) continue;
    rows.push_back(cells_of(judged, all, deviation_figures(judged, all.rows, deviation)));
  }
  return rows;
}

std::string order_text(const ScheduleOrder& order) {
  return fmt::format(
      "Order of schedules: {} of {} pairs whose measured steps differ by more than 2 %.",
      order.right, order.pairs);
}

std::string fitted_paces_text(const std::vector<JudgedPoint>& judged) {
  std::string paces;
  for (const JudgedPoint& row : judged) {
    if (row.pace == RunPace{} || row.role != PointRole::fitted) continue;
    paces += fmt::format("{}row {} ({} {}): {}", paces.empty() ? "" : ", ", row.point.id,
                         row.point.model, row.point.schedule,
                         row.pace.op_cost > 0 ? fmt::format("{:.0f} us", 1e6 * row.pace.op_cost)
                                              : fmt::format("rate {:.3f}", row.pace.rate));
  }
  return paces.empty() ? ""
                       : "Cost of an op, or where steps are too long without one the rate of the "
                         "devices, fitted to the fewest micro-batches: " +
                             paces + ".";
}

std::string unanswered_text(const Unanswered& unanswered) {
  return fmt::format("{} {}: {}", unanswered.ids.size() == 1 ? "row" : "rows",
                     fmt::join(unanswered.ids, ", "), unanswered.why);
}

std::string unread_title(const std::vector<UnreadRow>& unread, std::size_t read) {
  return fmt::format("{} of {} rows cannot be read and {} left out", unread.size(),
                     unread.size() + read, unread.size() == 1 ? "is" : "are");
}

bool unfit(const JudgedPoint& row) { return row.prediction && row.prediction->fits == false; }

// The rows that ran, and do not fit by the prediction; empty: there are none.
std::string unfit_text(const std::vector<JudgedPoint>& judged) {
  std::vector<std::string> ids;
  std::size_t known = 0;
  for (const JudgedPoint& row : judged) {
    if (!row.prediction || !row.prediction->fits) continue;
    ++known;
    if (unfit(row)) ids.push_back(row.point.id);
  }
  if (ids.empty()) return "";
  return fmt::format("{} of {} rows {} not fit into memory by the prediction: {}.", ids.size(),
                     known, ids.size() == 1 ? "does" : "do", fmt::join(ids, ", "));
}

std::vector<std::string> row_cells(const JudgedPoint& row) {
  std::optional<double> step;
  std::optional<double> memory;
  if (row.prediction) {
    step = row.prediction->step;
    memory = row.prediction->memory;
  }
  return {row.point.id,
          row.point.model,
          degrees_text(row.point),
          row.point.schedule,
          row.point.recompute,
          std::string(name(row.role)),
          or_blank(row.measured_step, step_text),
          or_blank(step, step_text),
          or_blank(row.step_deviation, signed_share),
          or_blank(row.point.memory, memory_text),
          row.point.memory ? or_blank(memory, memory_text) : "",
          or_blank(row.memory_deviation, signed_share),
          row.why_not.empty() && unfit(row) ? "does not fit into memory" : row.why_not};
}

const std::vector<Column> row_columns{{"row", false, 0, true},
                                      {"model", true},
                                      {"degrees", true},
                                      {"schedule", true},
                                      {"recompute", true},
                                      {"role", true},
                                      {"measured"},
                                      {"predicted"},
                                      {"deviation"},
                                      {"memory"},
                                      {"predicted"},
                                      {"deviation"},
                                      {"remark", true, 0, false, true}};

std::string markdown_table(const std::vector<Column>& columns, const CellRows& rows) {
  std::string text = "|";
  std::string rule = "|";
  for (const Column& column : columns) {
    text += fmt::format(" {} |", column.title);
    rule += column.left ? "---|" : "---:|";
  }
  text += "\n" + rule + "\n";
  for (const std::vector<std::string>& row : rows) {
    text += "|";
    for (const std::string& cell : row) text += fmt::format(" {} |", markdown_line(cell));
    text += "\n";
  }
  return text;
}

// Each source with the places that its rows were read at.
std::string sources_text(const std::vector<JudgedPoint>& judged) {
  std::vector<std::pair<std::string, std::string>> sources;
  for (const JudgedPoint& row : judged) {
    const std::pair<std::string, std::string> source{row.point.source, row.point.url};
    if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
      sources.push_back(source);
    }
  }
  std::string text;
  for (const auto& [source, url] : sources) {
    text += url.empty() ? fmt::format("- {}\n", markdown_line(source))
                        : fmt::format("- {}: {}\n", markdown_line(source), markdown_line(url));
  }
  return text;
}

// Each assumption with the rows that it is made for.
std::string assumptions_text(const std::vector<JudgedPoint>& judged) {
  std::vector<std::pair<std::string, std::vector<std::string>>> assumed;
  for (const JudgedPoint& row : judged) {
    for (const std::string& what : row.question.assumptions) {
      auto found = std::find_if(assumed.begin(), assumed.end(),
                                [&](const auto& other) { return other.first == what; });
      if (found == assumed.end()) found = assumed.insert(assumed.end(), {what, {}});
      found->second.push_back(row.point.id);
    }
  }
  std::string text;
  for (const auto& [what, ids] : assumed) {
    text += fmt::format(
        "- {} ({} rows: {}{})\n", markdown_line(what), ids.size(),
        markdown_line(fmt::format(
            "{}", fmt::join(ids.begin(),
                            ids.begin() + std::min<std::ptrdiff_t>(std::ssize(ids), 12), ", "))),
        ids.size() > 12 ? ", …" : "");
  }
  return text;
}

}  // namespace

std::string degrees_text(const Point& point) {
  std::string text;
  const auto add = [&text](std::string_view letter, int degree) {
    if (degree > 1) text += fmt::format("{}{}{}", text.empty() ? "" : " ", letter, degree);
  };
  add("t", point.tensor);
  add("c", point.context);
  add("p", point.pipeline);
  add("v", point.chunks);
  add("e", point.expert);
  add("d", point.data);
  add("z", point.zero > 1 ? point.zero : 1);
  if (text.empty()) text = "1";
  if (point.micro_batch == 0) return text;
  return text + fmt::format(" b{} m{}", point.micro_batch, microbatches_of(point));
}

std::string published_text(const std::vector<JudgedPoint>& judged, int width) {
  const PublishedSummary summary = summary_of(judged);
  std::string text;
  for (const Deviation deviation : {Deviation::step, Deviation::memory}) {
    const CellRows rows = figure_rows(judged, summary, deviation);
    if (rows.empty()) continue;
    text += fmt::format("{}{}\n\n{}", text.empty() ? "" : "\n",
                        deviation == Deviation::step ? "Step time" : "Memory of the fullest device",
                        table(figure_columns_of_groups, rows, width));
  }
  if (summary.order.pairs > 0) text += "\n" + wrapped(order_text(summary.order), width) + "\n";
  const std::string costs = fitted_paces_text(judged);
  if (!costs.empty()) text += "\n" + wrapped(costs, width) + "\n";
  const std::string misfits = unfit_text(judged);
  if (!misfits.empty()) text += "\n" + wrapped(misfits, width) + "\n";
  const std::vector<Unanswered> unanswered = unanswered_of(judged);
  if (!unanswered.empty()) text += "\nWithout a prediction\n";
  for (const Unanswered& one : unanswered) {
    text += wrapped("  " + unanswered_text(one), width) + "\n";
  }
  return text + "\n" + wrapped(std::string(roles_note), width) + "\n";
}

std::string published_rows_text(const std::vector<JudgedPoint>& judged, int width) {
  CellRows rows;
  for (const JudgedPoint& row : judged) rows.push_back(row_cells(row));
  return table(row_columns, rows, width);
}

std::string unread_text(const std::vector<UnreadRow>& unread, std::size_t read, int width) {
  if (unread.empty()) return "";
  std::string text = unread_title(unread, read) + ":\n";
  for (const UnreadRow& row : unread) {
    text += wrapped(fmt::format("  line {}: {}", row.line, row.why), width) + "\n";
  }
  return text;
}

std::string published_markdown(const std::vector<JudgedPoint>& judged, std::string_view points,
                               const std::vector<UnreadRow>& unread) {
  const PublishedSummary summary = summary_of(judged);
  std::string text =
      fmt::format("# Published measurements against the simulator\n\n{} rows of {}. {}\n",
                  judged.size(), markdown_line(points), roles_note);
  for (const Deviation deviation : {Deviation::step, Deviation::memory}) {
    const CellRows rows = figure_rows(judged, summary, deviation);
    if (rows.empty()) continue;
    text += fmt::format("\n## {}\n\n{}",
                        deviation == Deviation::step ? "Step time" : "Memory of the fullest device",
                        markdown_table(figure_columns_of_groups, rows));
  }
  if (summary.order.pairs > 0) text += "\n" + order_text(summary.order) + "\n";
  const std::string costs = fitted_paces_text(judged);
  if (!costs.empty()) text += "\n" + costs + "\n";
  const std::string misfits = unfit_text(judged);
  if (!misfits.empty()) text += "\n" + misfits + "\n";
  text += "\n## Sources\n\n" + sources_text(judged);
  const std::vector<Unanswered> unanswered = unanswered_of(judged);
  if (!unanswered.empty()) text += "\n## Without a prediction\n\n";
  for (const Unanswered& one : unanswered)
    text += "- " + markdown_line(unanswered_text(one)) + "\n";
  if (!unread.empty()) {
    text += fmt::format("\n## Unread\n\n{}:\n\n", unread_title(unread, judged.size()));
    for (const UnreadRow& row : unread) {
      text += "- " + markdown_line(fmt::format("line {}: {}", row.line, row.why)) + "\n";
    }
  }
  text += "\n## Assumed where nothing is printed\n\n" + assumptions_text(judged);
  for (const PointGroup& group : summary.groups) {
    CellRows rows;
    for (const std::size_t row : group.rows) rows.push_back(row_cells(judged[row]));
    text += fmt::format("\n## {}, {}\n\n{}", markdown_line(group.source), name(group.role),
                        markdown_table(row_columns, rows));
  }
  return text;
}

}  // namespace stageline
