// Puts the sections of a comparison together.
#include "tools/report/page/comparison_page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/report/page/outcome_page.hpp"
#include "tools/report/page/sections.hpp"
#include "tools/report/page/study_pages.hpp"
#include "tools/report/speedups.hpp"
#include "tools/report/text/sensitivity.hpp"
#include "tools/study/figures/ranking.hpp"

namespace stageline::report {
namespace {

constexpr double page_quantile = 0.95;
constexpr std::size_t most_levers = 20;

const Outcome& outcome_of(const ComparisonReport& report, std::size_t row) {
  return *report.rows[row].outcome;
}

Bytes peak_of(const Outcome& outcome) {
  return nth(outcome.memory.device, outcome.peak_device()).peak;
}

std::string name_of(const ComparisonReport& report, std::size_t row) {
  const std::string name =
      row_name(report.rows[row], {report.view.cuts, report.view.recomputations});
  return report.view.sweep ? fmt::format("{} on {}", name, report.rows[row].asked.device_count())
                           : name;
}

PageRow page_row(const RankedRows& order, std::size_t row) {
  const bool is_best = row == order.recommended;
  return {page_row_id(row), is_best ? "recommended" : row == order.fastest ? "fastest" : ""};
}

std::string memory_words(const Outcome& outcome) {
  const std::optional<MemoryNeed> need = tightest(outcome);
  return need ? print(*need) : bytes_text(peak_of(outcome), outcome.bytes_known());
}

bool several_blocks(const ComparisonReport& report) {
  return std::count_if(report.orders.begin(), report.orders.end(),
                       [](const RankedRows& order) { return !order.rows.empty(); }) > 1;
}

std::string block_title(const RankedRows& order) {
  return order.synchrony == Synchrony::synchronous
             ? "Synchronous: one update a step, as plain training"
             : "Asynchronous: updates on stale weights; a step is as many mini-batches";
}

// The least time that a device is busy, on average: with it no row would idle.
std::optional<ReferenceValue> least_work(const ComparisonReport& report) {
  std::optional<double> least;
  for (const Row& row : report.rows) {
    if (!row.outcome || row.outcome->step_time <= Time{}) continue;
    const double busy =
        static_cast<double>(row.outcome->step_time.count()) * (1 - row.outcome->bubble_fraction);
    least = least ? std::min(*least, busy) : busy;
  }
  if (!least || *least <= 0) return std::nullopt;
  return ReferenceValue{
      *least, fmt::format("bound {}", print(Time(std::llround(*least)))),
      "The bound is the least of all rows' mean busy time of a device: a step in which no device "
      "idles."};
}

RankingBars ranking_of(const ComparisonReport& report) {
  RankingBars bars;
  bars.bound = least_work(report);
  const bool titles = several_blocks(report);
  const RankBy& by = report.view.by;
  const std::optional<double> share =
      by.measure == RankBy::Measure::quantile ? by.share : std::optional(page_quantile);
  bars.quantile_words = share ? fmt::format("p{:g}", *share * 100) : "mean";
  for (const RankedRows& order : report.orders) {
    RankingGroup group{titles ? block_title(order) : "", {}, {}};
    if (!order.sentence.empty()) group.sentences.push_back(order.sentence);
    for (const std::size_t i : order.rows) {
      const Outcome& outcome = outcome_of(report, i);
      RankingRow row{page_row(order, i),      name_of(report, i),    outcome.step_time,
                     outcome.bubble_fraction, memory_words(outcome), outcome.fit};
      if (report.view.uncertain != nullptr && (*report.view.uncertain)[i].steps) {
        row.quantile = at_quantile((*report.view.uncertain)[i], share);
      }
      group.rows.push_back(std::move(row));
    }
    if (!group.rows.empty() || !group.sentences.empty()) bars.groups.push_back(std::move(group));
  }
  return bars;
}

// The limit of all devices of all rows; nothing where they differ, or one is unknown.
std::optional<ReferenceValue> memory_of_devices(const ComparisonReport& report) {
  std::optional<Bytes> limit;
  for (const Row& row : report.rows) {
    if (!row.outcome) continue;
    for (const std::optional<Bytes>& one : row.outcome->memory_limit) {
      if (!one || (limit && *limit != *one)) return std::nullopt;
      limit = one;
    }
  }
  if (!limit) return std::nullopt;
  return ReferenceValue{static_cast<double>(limit->count), "memory of a device: " + print(*limit)};
}

ScatterChart scatter_of(const ComparisonReport& report) {
  ScatterChart chart;
  chart.limit = memory_of_devices(report);
  chart.bound = least_work(report);
  for (const RankedRows& order : report.orders) {
    ScatterSeries series{order.synchrony == Synchrony::synchronous ? "synchronous" : "asynchronous",
                         {}};
    for (const std::size_t i : order.rows) {
      const Outcome& outcome = outcome_of(report, i);
      if (!outcome.bytes_known()) continue;
      ScatterPoint point{page_row(order, i), name_of(report, i), outcome.step_time,
                         peak_of(outcome), outcome.fit};
      if (i < report.commands.size()) point.command = report.commands[i];
      series.points.push_back(std::move(point));
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

PageSection rows_of(const ComparisonReport& report) {
  std::vector<std::size_t> all;
  std::vector<PageRow> rows;
  for (const RankedRows& order : report.orders) {
    for (const std::size_t i : order.rows) {
      all.push_back(i);
      rows.push_back(page_row(order, i));
    }
  }
  Sheet sheet = comparison_sheet(report.rows, all, report.view);
  const bool both = several_blocks(report);
  sheet.columns.push_back(
      {"updates", "Synchronous: one update a step; asynchronous: on stale weights", true, both});
  const bool commands = !report.commands.empty();
  if (commands) {
    sheet.columns.push_back({"command", "What reproduces the row", true, false});
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    const bool synchronous = outcome_of(report, all[k]).synchrony == Synchrony::synchronous;
    sheet.rows[k].push_back({synchronous ? "synchronous" : "asynchronous", {}});
    if (commands) sheet.rows[k].push_back({report.commands[all[k]], {}});
  }
  return table_section("All rows", sheet, rows);
}

std::vector<NamedDistribution> distributions_of(const ComparisonReport& report) {
  std::vector<NamedDistribution> rows;
  if (report.view.uncertain == nullptr) return rows;
  for (const RankedRows& order : report.orders) {
    for (const std::size_t i : order.rows) {
      const Uncertainty& one = (*report.view.uncertain)[i];
      if (one.steps && !one.steps->step.empty()) {
        rows.push_back({name_of(report, i), &*one.steps, &one.distribution});
      }
    }
  }
  return rows;
}

void add_sensitivity(Page& page, const ComparisonReport& report) {
  if (report.sensitivity == nullptr) return;
  const Sensitivity& found = *report.sensitivity;
  Tornado tornado = sensitivity_tornado(found, most_levers);
  const std::string title = "What the step of " + report.outcomes.front().schedule + " hangs on";
  if (!tornado.bars.empty()) {
    page.sections.push_back(tornado_section(title, tornado, advice_of(found)));
  }
  page.sections.push_back(
      table_section("All levers of " + report.outcomes.front().schedule, sensitivity_sheet(found)));
}

}  // namespace

std::string page_row_id(std::size_t row) { return fmt::format("row{}", row); }

Page comparison_page(const ComparisonReport& report) {
  Page page = page_with("Pipeline schedules · " + report.setting.model.name,
                        {report.question, report.advice});
  const auto add = [&](PageSection section) { page.sections.push_back(std::move(section)); };
  const bool any = std::any_of(report.orders.begin(), report.orders.end(),
                               [](const RankedRows& order) { return !order.rows.empty(); });
  if (any) add(ranking_section("Ranking", ranking_of(report)));
  const ScatterChart scatter = scatter_of(report);
  if (any && report.view.sweep) {
    add(curves_section("Speed-up by devices", speedup_chart(report.setting, report.rows)));
  }
  if (!scatter.series.empty()) add(scatter_section("Memory against time", scatter));
  if (any) add(rows_of(report));
  if (!report.not_possible.empty()) add(text_section("Not possible", report.not_possible));
  if (!report.outcomes.empty()) {
    Page diagrams = page_of(report.setting, report.drawn, report.outcomes);
    for (PageSection& section : diagrams.sections) add(std::move(section));
    page.footnotes = std::move(diagrams.footnotes);
  }
  if (!report.waterfalls.empty()) {
    const bool two = report.waterfalls.size() > 1;
    add(waterfall_section(
        "Where the step's time goes", waterfall_chart(report.waterfalls),
        two ? difference_sentence(report.waterfalls[0], report.waterfalls[1]) : ""));
  }
  const std::vector<NamedDistribution> uncertain = distributions_of(report);
  if (!uncertain.empty()) add(distribution_section("Distribution of the step", uncertain));
  add_sensitivity(page, report);
  add_notes(page, report.notes);
  return page;
}

}  // namespace stageline::report
