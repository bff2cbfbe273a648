#include "tools/report/text/compared.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tools/base/text.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/speedups.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/study/evidence/evidence.hpp"
#include "tools/study/figures/energy.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::report {
namespace {

constexpr int speedup_rows = 16;  // of the chart as text

bool any_priced(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const Row& row) { return row.figures.rates.dollars.has_value(); });
}

// Empty where the fastest device is as fast in all rows.
std::string baselines_note(const std::vector<Row>& rows) {
  double least = 0;
  double most = 0;
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    double rate = 0;
    for (const Device& device : row.asked.cluster().devices) rate = std::max(rate, device.rate);
    least = least == 0 ? rate : std::min(least, rate);
    most = std::max(most, rate);
  }
  if (least == most) return "";
  return fmt::format(
      "the speed-up of a row is over the fastest of its own devices, which of some rows is {:.3g}× "
      "as fast as of others: throughput compares them",
      most / least);
}

// The figures behind energy and cost, with their sources, where the table shows them.
std::vector<std::string> amount_notes(const Case& asked, const ComparisonView& view) {
  const auto shown = [&](const char* column) {
    return std::find(view.columns.begin(), view.columns.end(), column) != view.columns.end();
  };
  const bool ranks =
      view.by.measure == RankBy::Measure::energy || view.by.measure == RankBy::Measure::cost;
  std::vector<std::string> notes;
  if (ranks || shown("energy")) notes = power_notes(asked);
  if (ranks || shown("cost") || view.budget.tokens > 0) {
    for (const std::string& note : price_notes(asked, view.budget.price_per_hour)) {
      notes.push_back(note);
    }
  }
  return notes;
}

// One block of the comparison: its table, the rows that are not possible, the recommendation.
std::string block(const std::vector<Row>& rows, const RankedRows& order,
                  const ComparisonView& view) {
  std::string text =
      order.synchrony == Synchrony::synchronous
          ? "Synchronous (one update a step, as plain training)\n"
          : "Asynchronous (updates on stale weights; a step is as many mini-batches)\n";
  text += comparison_table(rows, order, view);
  for (const Impossible& reason : impossible_rows(rows)) {
    if (reason.synchrony != order.synchrony) continue;
    text += reason.sentence(view.sweep) + "\n";
  }
  if (!order.sentence.empty()) text += "→ " + order.sentence + "\n";
  return text;
}

// Whether a block has anything to show: rows, or reasons that no other block has shown.
bool has_content(const std::vector<Row>& rows, const RankedRows& order) {
  const std::vector<Impossible> reasons = impossible_rows(rows);
  return !order.rows.empty() ||
         std::any_of(reasons.begin(), reasons.end(),
                     [&](const Impossible& reason) { return reason.synchrony == order.synchrony; });
}

bool does_not_fit(const Row& row) { return row.outcome && row.outcome->fit == Fit::no; }

std::string sweep_chart(const answers::Comparison& found, int columns) {
  Chart chart = speedup_chart(found.setting, found.rows);
  chart.title.clear();  // the heading says it
  if (std::any_of(found.rows.begin(), found.rows.end(), does_not_fit)) {
    chart.footnotes.emplace_back("Small letters: does not fit into the memory of the devices.");
  }
  return "\n" + chart_text(chart, columns, speedup_rows);
}

}  // namespace

std::string Impossible::sentence(bool sweep) const {
  return fmt::format("{}{}: not possible: {}", schedules,
                     sweep ? fmt::format(" on {} devices", devices) : "", why_not);
}

std::vector<Impossible> impossible_rows(const std::vector<Row>& rows) {
  const RowDifferences differences = differences_of(rows);
  std::vector<Impossible> reasons;
  for (const Row& row : rows) {
    if (row.outcome) continue;
    const int devices = row.asked.device_count();
    const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const Impossible& known) {
      return known.devices == devices && known.why_not == row.why_not;
    });
    if (same == reasons.end()) {
      reasons.push_back({block_of(row), devices, row.why_not, row_name(row, differences)});
    } else {
      same->schedules += ", " + row_name(row, differences);
    }
  }
  return reasons;
}

ComparisonView with_rows(ComparisonView view, const answers::Comparison& found) {
  view.cuts = cuts_differ(found.rows);
  view.recomputations = differences_of(found.rows).recomputations;
  if (!found.uncertain.empty()) view.uncertain = &found.uncertain;
  return view;
}

std::string compared_heading(const answers::Comparison& found) {
  Case first = found.rows.front().asked;
  first.partition = cuts_of(found.rows);
  first.found_cut.reset();
  return found.sweep() ? sweep_heading(found.setting, first, found.rows.back().asked)
                       : heading(found.setting, first);
}

std::string compared_text(const answers::Comparison& found, const ComparisonView& view,
                          const ComparedView& beside) {
  std::string text;
  const auto say = [&](const std::string& lines) { text += wrapped(lines, beside.width); };
  if (!beside.quiet) say(compared_heading(found));
  if (!found.alone.empty()) say("\n→ " + found.alone + "\n");
  for (const RankedRows& order : found.orders) {
    if (has_content(found.rows, order)) say("\n" + block(found.rows, order, view));
  }
  if (!found.both.empty()) {
    text += "\nWhere the step's time goes\n" +
            two_waterfalls_table(found.both[0], found.both[1], beside.width);
  }
  const std::vector<std::string>& ways = found.ways.sentences;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    say(fmt::format("{}→ {}\n", i == 0 ? "\n" : "", ways[i]));
  }
  if (found.sweep()) text += sweep_chart(found, beside.chart_columns);
  return text;
}

std::vector<std::string> compared_notes(const answers::Comparison& found,
                                        const ComparisonView& view, std::vector<std::string> said) {
  const std::vector<Row>& rows = found.rows;
  said.insert(said.end(), found.notes.begin(), found.notes.end());
  if (!found.both.empty()) {
    const std::string order = shapley_note(found.both.front().waterfall);
    if (!order.empty()) said.push_back(order);
  }
  for (const std::string& note : notes(found.setting)) said.push_back(note);
  const auto say = [&](const std::string& note) {
    if (std::find(said.begin(), said.end(), note) == said.end()) said.push_back(note);
  };
  const bool recomputes = std::any_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.outcome && row.outcome->figures.recompute > 0;
  });
  if (recomputes) {
    say("recompute: the share of the devices' time that runs forwards again, which the bubble does "
        "not count");
  }
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    for (const std::string& note : stream_notes(row.asked, *row.outcome)) say(note);
    if (!row.outcome->consistent()) {
      say(row.outcome->schedule + ": F≠B: backwards read other weights than their forwards");
    }
  }
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    const Intervals intervals = intervals_of(row.asked.model(), row.asked.ranked());
    if (intervals.step) say("range: " + provenance_of(*intervals.step));
  }
  for (const std::string& note : found.ties) say(note);
  if (const std::string note = baselines_note(rows); !note.empty()) say(note);
  if (view.budget.tokens > 0 && !view.budget.price_per_hour && !any_priced(rows)) {
    say("the cost of the training is unknown: give --price, or a cluster whose devices have one");
  }
  for (const Row& row : rows) {
    if (!row.outcome) continue;
    for (const std::string& note : amount_notes(row.asked, view)) say(note);
  }
  return said;
}

}  // namespace stageline::report
