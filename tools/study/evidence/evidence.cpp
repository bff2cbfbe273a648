#include "tools/study/evidence/evidence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "cost_models/transformers/priced_language.hpp"
#include "sim/base/errors.hpp"
#include "tools/study/evidence/evidence_file.hpp"

namespace stageline {
namespace {

constexpr std::string_view columns_behind = "rows,sources,low,high,mean_error,date";

std::string header() {
  return fmt::format("figure,{},{}", fmt::join(run_traits, ","), columns_behind);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// An empty cell is 0.
double number_in(const std::string& cell) {
  if (cell.empty()) return 0;
  std::istringstream text(cell);
  double value = -1;
  text >> value;
  return text.fail() || !text.eof() ? -1 : value;
}

ClassEvidence evidence_in(const std::string& line, const std::string& file, int number) {
  const std::vector<std::string> cells = cells_of(line);
  const auto refuse = [&](const std::string& why) {
    throw TraceError(file, fmt::format("line {}", number), why);
  };
  const std::size_t behind = 1 + run_traits.size();
  if (cells.size() != behind + 6) {
    refuse(fmt::format("{} cells, and the table has {}", cells.size(), behind + 6));
  }
  ClassEvidence row;
  if (cells[0] == name(HeldFigure::memory)) {
    row.figure = HeldFigure::memory;
  } else if (cells[0] != name(HeldFigure::step)) {
    refuse(fmt::format("the figure is step or memory, not \"{}\"", cells[0]));
  }
  std::copy_n(cells.begin() + 1, run_traits.size(), row.of.begin());
  const double rows = number_in(cells[behind]);
  const double sources = number_in(cells[behind + 1]);
  row.low = number_in(cells[behind + 2]);
  row.high = number_in(cells[behind + 3]);
  row.mean_error = number_in(cells[behind + 4]);
  row.date = cells[behind + 5];
  if (rows < 1 || sources < 1 || row.low < 0 || row.low > 1 || row.high < 0 ||
      (row.high > 0 && row.high < 1) || row.mean_error < 0) {
    refuse("rows and sources are counts, low is at most 1 and high at least 1");
  }
  row.rows = static_cast<int>(rows);
  row.sources = static_cast<int>(sources);
  return row;
}

// The range around all ranges.
Interval widest(const EvidenceTable& table, const RunClass& of, HeldFigure figure) {
  Interval all;
  all.is_held = false;
  all.of = of;
  for (const ClassEvidence& row : table) {
    if (row.figure != figure || !row.is_enough()) continue;
    all.low = std::min(all.low, row.low);
    all.high = std::max(all.high, row.high);
    if (row.of == widened(of, 0)) {
      all.rows = row.rows;
      all.sources = row.sources;
    }
  }
  return all;
}

const ClassEvidence* find_class(const EvidenceTable& table, const RunClass& of, HeldFigure figure) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const ClassEvidence& row) {
    return row.figure == figure && row.of == of;
  });
  return found == table.end() ? nullptr : &*found;
}

// The traits that the runs of a calibration have: software, kind, chip and products.
constexpr std::size_t calibrated_traits = 4;

// What remains where the model's rates rest on runs of its software and class; empty: they do not.
std::optional<Interval> calibrated_interval(const Model& model, const RunClass& of) {
  const std::optional<PricedLanguage> priced = priced_language(model);
  if (!priced) return std::nullopt;
  for (const CalibratedRuns& runs : priced->calibrated) {
    const bool alike = runs.software == priced->software && runs.kind == of[1] &&
                       runs.products == of[chip_trait + 1];
    if (!alike || !(runs.high > 0)) continue;
    Interval interval{runs.low, runs.high, widened(of, calibrated_traits), runs.rows, 1};
    interval.calibrated = runs.rows;
    return interval;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(HeldFigure figure) { return figure == HeldFigure::step ? "step" : "memory"; }

std::optional<Interval> find_interval(const EvidenceTable& table, const RunClass& of,
                                      HeldFigure figure) {
  if (find_class(table, widened(of, 0), figure) == nullptr) return std::nullopt;
  if (of[chip_trait] == other_chip ||
      find_class(table, widened(of, chip_trait + 1), figure) == nullptr) {
    return widest(table, of, figure);
  }
  for (std::size_t stated = of.size() + 1; stated-- > 0;) {
    const RunClass around = widened(of, stated);
    const ClassEvidence* const row = find_class(table, around, figure);
    if (row == nullptr || !row->is_enough()) continue;
    return Interval{row->low, row->high, around, row->rows, row->sources, true};
  }
  return std::nullopt;
}

Intervals intervals_of(const Model& model, const RankedCluster* ranked) {
  const std::optional<RunClass> of = run_class(model, ranked);
  if (!of) return {};
  const std::optional<Interval> calibrated = calibrated_interval(model, *of);
  return {calibrated ? calibrated : find_interval(bundled_evidence(), *of, HeldFigure::step),
          find_interval(bundled_evidence(), *of, HeldFigure::memory)};
}

std::string provenance_of(const Interval& interval) {
  const std::string& software = interval.of.front();
  const std::string_view stated = software == "known"     ? ", software stated"
                                  : software == "unknown" ? ", asked without their software"
                                                          : "";
  if (interval.calibrated > 0) {
    return fmt::format(
        "80 % of other runs of {} by this software lie within, where a calibration rests on {} of "
        "them, by published runs left out",
        words_of(interval.of), interval.calibrated);
  }
  if (!interval.is_held) {
    return fmt::format(
        "no published run of {} was held against the simulator: the widest range of all classes",
        words_of(widened(interval.of, chip_trait + 1)));
  }
  return fmt::format("80 % of published runs of {} lie within, by {} runs of {} sources alike{}",
                     words_of(interval.of), interval.rows, interval.sources, stated);
}

const EvidenceTable& bundled_evidence() {
  static const EvidenceTable table = [] {
    const Bundled& file = bundled_evidence_files().front();
    return read_class_evidence(std::string(file.text), std::string(file.name));
  }();
  return table;
}

EvidenceTable read_class_evidence(const std::string& csv, const std::string& file) {
  std::istringstream lines(csv);
  std::string line;
  if (!std::getline(lines, line) || line != header()) {
    throw TraceError(file, "line 1",
                     fmt::format("the columns of a table of evidence are {}", header()));
  }
  EvidenceTable table;
  for (int number = 2; std::getline(lines, line); ++number) {
    if (!line.empty()) table.push_back(evidence_in(line, file, number));
  }
  return table;
}

std::string print_class_evidence(const EvidenceTable& table) {
  std::string text = header() + "\n";
  for (const ClassEvidence& row : table) {
    const std::string range =
        row.is_enough() ? fmt::format("{:.3f},{:.3f}", row.low, row.high) : ",";
    text += fmt::format("{},{},{},{},{},{:.3f},{}\n", name(row.figure), fmt::join(row.of, ","),
                        row.rows, row.sources, range, row.mean_error, row.date);
  }
  return text;
}

}  // namespace stageline
