// Writes a plan as text.
#include "tools/report/text/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "tools/base/amounts.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/plan_columns.hpp"
#include "tools/report/text/training.hpp"

namespace stageline::report {
namespace {

const planner::PlanPoint& fastest(const planner::Plan& plan) { return plan.front.front(); }

// The rows to show: the first, and the recommended one.
std::vector<std::size_t> shown_places(const planner::Plan& plan, std::size_t top) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < plan.front.size(); ++i) {
    if (top == 0 || i < top || i == plan.recommended) places.push_back(i);
  }
  return places;
}

std::string counted(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

}  // namespace

std::string plan_heading(const Setting& setting, const planner::PlanRequest& request) {
  const Model& model = setting.model;
  const std::vector<int>& asked =
      request.space.devices.empty() ? setting.device_counts : request.space.devices;
  const auto [least, most] = std::minmax_element(asked.begin(), asked.end());
  const std::string devices =
      *least == *most ? counted(*most, "device", "devices")
                      : fmt::format("{} to {} devices", grouped(*least), grouped(*most));
  const std::string name = setting.cluster.fixed ? setting.cluster.fixed->name : "";
  const std::string sample = model.sample.empty() ? "sample" : model.sample;
  const std::string tokens =
      model.tokens > 0
          ? fmt::format(" of {} tokens, {} tokens,", model.tokens,
                        count_text(static_cast<double>(request.samples * model.tokens)))
          : "";
  return model_line(setting) +
         fmt::format("{}{} · {}{} an update\n", devices, name.empty() ? "" : " of " + name,
                     counted(request.samples, sample.c_str(), (sample + "s").c_str()), tokens);
}

std::string plan_table(const Model& model, const planner::Plan& plan, const PlanView& view) {
  if (plan.front.empty()) return "";
  std::vector<PlanRow> rows;
  for (const std::size_t place : shown_places(plan, view.top)) {
    rows.push_back({&plan.front[place], place, &plan, &model});
  }
  std::vector<Column> columns{{"", false, 0, true}};
  std::vector<std::vector<std::string>> cells;
  for (const PlanRow& row : rows) {
    cells.push_back(
        {fmt::format("{}{}", row.place == plan.recommended ? "→ " : "", row.place + 1)});
  }
  for (const PlanColumn& one : plan_columns()) {
    if (one.matters != nullptr && std::none_of(rows.begin(), rows.end(), one.matters)) continue;
    columns.push_back(titled(one, plan));
    for (std::size_t i = 0; i < rows.size(); ++i) cells[i].push_back(one.cell(rows[i]));
  }
  const FittedTable fitted = fitted_table(columns, cells, view.width);
  std::string text = fitted.text;
  const std::size_t more = plan.front.size() - rows.size();
  if (more > 0) text += fmt::format("… {} more: --top {}\n", more, plan.front.size());
  if (!fitted.left_out.empty()) {
    text += wrapped(fmt::format("… without {}: a wider terminal or COLUMNS=0\n",
                                fmt::join(fitted.left_out, ", ")),
                    view.width);
  }
  return text;
}

Sheet plan_sheet(const Model& model, const planner::Plan& plan, const PlanView& view) {
  Sheet sheet{{{"point", "Its number in the front, the fastest first", true}}, {}};
  std::vector<PlanRow> rows;
  for (std::size_t place = 0; place < plan.front.size(); ++place) {
    rows.push_back({&plan.front[place], place, &plan, &model});
    sheet.rows.push_back(
        {{fmt::format("{}", place + 1), count_figure(static_cast<std::int64_t>(place) + 1)}});
  }
  for (const PlanColumn& one : plan_columns()) {
    if (one.matters != nullptr && std::none_of(rows.begin(), rows.end(), one.matters)) continue;
    sheet.columns.push_back({titled(one, plan).title, one.definition, one.column.left});
    for (const PlanRow& row : rows) {
      sheet.rows[row.place].push_back(
          {one.cell(row), one.figure == nullptr ? CellFigure{} : one.figure(row)});
    }
  }
  sheet.columns.push_back({"command", "What reproduces the point", true, false});
  for (const PlanRow& row : rows) {
    sheet.rows[row.place].push_back({command_of(*row.point, view), {}});
  }
  return sheet;
}

std::string command_of(const planner::PlanPoint& point, const PlanView& view) {
  return point.flags.empty() ? view.command : view.command + " " + point.flags;
}

std::string plan_answer(const planner::Plan& plan, const PlanView& view) {
  const auto prose = [&](const std::string& text) { return wrapped(text, view.width); };
  if (plan.front.empty()) {
    if (!plan.missing) return prose("→ nothing that was tried can run\n");
    return prose(fmt::format("→ {}: {}; the least, with\n",
                             plan.partial ? "nothing that fits was found yet" : "nothing fits",
                             print_missing(plan.missing->need))) +
           fmt::format("  {} {}\n", view.command, plan.missing->flags);
  }
  std::string text;
  if (!plan.sentence.empty()) text += prose(fmt::format("→ {}\n", plan.sentence));
  if (plan.recommended) text += "  " + command_of(plan.front[*plan.recommended], view) + "\n";
  if (!view.flags) return text;
  text += "\n";
  for (const std::size_t place : shown_places(plan, view.top)) {
    text += fmt::format("{}: {}\n", place + 1, command_of(plan.front[place], view));
  }
  return text;
}

std::string plan_search(const planner::Plan& plan) {
  const planner::PlanProgress& counts = plan.counts;
  const std::int64_t all = counts.judged + counts.pruned + counts.refused + counts.left;
  const std::string numbers = fmt::format(
      "{}, {} simulated, {} pruned by bound{}{}", counted(all, "candidate", "candidates"),
      grouped(counts.judged), grouped(counts.pruned),
      counts.refused > 0 ? fmt::format(", {} that cannot run", grouped(counts.refused)) : "",
      counts.left > 0
          ? fmt::format(", {} {}", grouped(counts.left),
                        plan.behind ? "estimated to be far behind (--thorough: these, too)"
                                    : "not looked at")
          : "");
  if (plan.front.empty()) return fmt::format("searched: {}\n", numbers);
  if (plan.exhausted) return fmt::format("optimal over what was searched: {}\n", numbers);
  std::string bound;
  if (plan.bound > Time{}) {
    const double gap = plan_gap(plan);
    bound =
        fmt::format("; nothing in it is faster than {}, {}", print(plan.bound),
                    gap < 0.00005 ? "which the fastest reaches"
                                  : fmt::format("{} below the fastest", percent(gap / (1 + gap))));
  }
  return fmt::format("{}: {}{}\n", plan.partial ? "best so far" : "best found", numbers, bound);
}

std::string plan_dropped(const planner::Plan& plan, int width) {
  std::vector<std::vector<std::string>> pruned;
  std::vector<std::vector<std::string>> refused;
  for (const planner::PlanDropped& one : plan.dropped) {
    const std::string count = grouped(one.candidates);
    if (one.bound) {
      pruned.push_back({print(*one.bound), count, one.what, one.why});
    } else {
      refused.push_back({count, one.what, one.why});
    }
  }
  std::string text;
  if (!pruned.empty()) {
    text += "Pruned: no candidate of these is faster than its bound\n" +
            table({{"bound"}, {"candidates"}, {"flags", true}, {"why", true, 0, false, true}},
                  pruned, width);
  }
  if (!refused.empty()) {
    text += (text.empty() ? "" : "\n") + std::string("Cannot run\n") +
            table({{"candidates"}, {"flags", true}, {"why", true, 0, false, true}}, refused, width);
  }
  return text;
}

std::string progress_words(const planner::PlanProgress& progress) {
  std::string text =
      fmt::format("tried {} · pruned {}", grouped(progress.judged), grouped(progress.pruned));
  if (progress.left > 0) text += fmt::format(" · left {}", grouped(progress.left));
  if (progress.best > Time{}) text += fmt::format(" · best {}", print(progress.best));
  if (progress.bound > Time{}) text += fmt::format(" · bound {}", print(progress.bound));
  return text;
}

std::string grouped(std::int64_t count) {
  std::string text = fmt::format("{}", count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > first; at -= 3) {
    text.insert(static_cast<std::size_t>(at), " ");
  }
  return text;
}

double plan_gap(const planner::Plan& plan) {
  if (plan.front.empty() || plan.bound <= Time{}) return 0;
  return std::max(0.0, to_seconds(fastest(plan).verdict.step) / to_seconds(plan.bound) - 1);
}

std::string throughput_unit(const Model& model) {
  if (model.batch == 0) return "micro-batches/s";
  return (model.sample.empty() ? std::string("sample") : model.sample) + "s/s";
}

std::string plan_text(const answers::PlanAnswer& found, const PlanView& view, bool quiet,
                      bool dropped) {
  const int width = view.width;
  std::string text;
  if (!quiet) text = wrapped(plan_heading(found.setting, found.request) + "\n", width);
  text += plan_table(found.setting.model, found.plan, view) + plan_answer(found.plan, view);
  text += wrapped((view.flags ? "\n" : "") + plan_search(found.plan), width);
  return dropped ? text + "\n" + plan_dropped(found.plan, width) : text;
}

}  // namespace stageline::report
