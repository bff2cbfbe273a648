// Makes the table of evidence, and leaves out one source at a time.
#include "tools/published/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/software.hpp"

namespace stageline {
namespace {

constexpr double tail = 0.9;  // of each side: 80 % are between

// Keys of a spelled model that say how it runs, not what it is.
const std::set<std::string>& software_options() {
  static const std::set<std::string> keys = [] {
    std::set<std::string> found{"software", "graphs", "dispatch"};
    for (const KernelConstant& constant : kernel_constants()) found.emplace(constant.name);
    for (const SoftwareGeneration& one : software_generations()) {
      for (std::string_view list : {one.options, one.experts}) {
        while (!list.empty()) {
          const std::string_view option = list.substr(0, list.find(','));
          found.emplace(option.substr(0, option.find('=')));
          list.remove_prefix(std::min(option.size() + 1, list.size()));
        }
      }
    }
    return found;
  }();
  return keys;
}

// The runs of one class, whose sources have a weight of 1 each.
class ClassRuns {
 public:
  void add(const HeldRun& run) {
    ratios_.emplace_back(run.ratio, run.source);
    ++sources_[run.source];
  }

  int rows() const { return static_cast<int>(ratios_.size()); }

  ClassEvidence evidence(HeldFigure figure, const RunClass& of, const std::string& date) const {
    ClassEvidence row;
    row.figure = figure;
    row.of = of;
    row.rows = rows();
    row.sources = static_cast<int>(sources_.size());
    row.date = date;
    double errors = 0;
    for (const auto& [ratio, source] : ratios_) {
      errors += std::abs(ratio - 1) / sources_.at(source);
    }
    row.mean_error = errors / row.sources;
    if (row.rows < fewest_runs || row.sources < fewest_sources) return row;
    const double reach = furthest * row.mean_error;
    const double low = 1 / quantile([](double ratio) { return 1 / ratio; });
    const double high = quantile([](double ratio) { return ratio; });
    row.low = std::min(1.0, std::max(low, 1 - reach));
    row.high = std::max(1.0, std::min(high, 1 + reach));
    return row;
  }

 private:
  template <class Of>
  double quantile(const Of& of) const {
    std::vector<std::pair<double, double>> weighted;  // value, weight
    for (const auto& [ratio, source] : ratios_) {
      weighted.emplace_back(of(ratio), 1.0 / sources_.at(source));
    }
    std::sort(weighted.begin(), weighted.end());
    const double all = static_cast<double>(sources_.size());
    const double wanted = tail * (all + all / static_cast<double>(ratios_.size()));
    constexpr double rounding = 1e-9;
    double sum = 0;
    for (const auto& [value, weight] : weighted) {
      sum += weight;
      if (sum >= wanted - rounding) return value;
    }
    return weighted.back().first;
  }

  std::vector<std::pair<double, std::string>> ratios_;
  std::map<std::string, int> sources_;
};

std::size_t stated_traits(const RunClass& of) {
  return static_cast<std::size_t>(std::find(of.begin(), of.end(), any_word) - of.begin());
}

void add_runs(const std::vector<JudgedPoint>& judged, std::vector<HeldRun>& runs) {
  for (const JudgedPoint& row : judged) {
    const bool ran = row.role != PointRole::fitted && !row.question.blocks_alone;
    if (!ran || !row.prediction || !row.prediction->of) continue;
    const auto add = [&](HeldFigure figure, const std::optional<double>& deviation) {
      if (!deviation) return;
      runs.push_back({figure, *row.prediction->of, row.point.source, 1 / (1 + *deviation)});
    };
    add(HeldFigure::step, row.step_deviation);
    add(HeldFigure::memory, row.memory_deviation);
  }
}

}  // namespace

Question without_software(Question question) {
  std::string& trace = question.request.setting.trace;
  std::string kept;
  for (std::size_t at = 0; at <= trace.size();) {
    const std::size_t comma = std::min(trace.find(',', at), trace.size());
    const std::string option = trace.substr(at, comma - at);
    const bool is_model = at == 0;
    if (is_model || software_options().count(option.substr(0, option.find('='))) == 0) {
      kept += (is_model ? "" : ",") + option;
    }
    at = comma + 1;
  }
  trace = std::move(kept);
  question.request.setting.software.clear();
  return question;
}

std::vector<HeldRun> held_runs(const std::vector<Point>& points, const JudgeRequest& request) {
  std::vector<HeldRun> runs;
  add_runs(judge_points(points, request), runs);
  JudgeRequest plain = request;
  plain.ask = [&request](const Point& point, const RunPace& pace) {
    return without_software(request.ask ? request.ask(point, pace)
                                        : question_of(point, request.calibration, pace));
  };
  add_runs(judge_points(points, plain), runs);
  return runs;
}

EvidenceTable evidence_of(const std::vector<HeldRun>& runs, const std::string& date) {
  std::map<std::pair<HeldFigure, RunClass>, ClassRuns> classes;
  for (const HeldRun& run : runs) {
    for (std::size_t stated = 0; stated <= run.of.size(); ++stated) {
      classes[{run.figure, widened(run.of, stated)}].add(run);
    }
  }
  EvidenceTable table;
  for (const auto& [key, of_class] : classes) {
    const auto& [figure, of] = key;
    const std::size_t stated = stated_traits(of);
    const ClassEvidence row = of_class.evidence(figure, of, date);
    const bool adds = stated > 0 && row.is_enough() &&
                      row.rows < classes.at({figure, widened(of, stated - 1)}).rows();
    if (adds || stated <= chip_trait + 1) table.push_back(row);
  }
  return table;
}

std::vector<Coverage> coverage_of(const std::vector<HeldRun>& runs) {
  std::map<std::tuple<HeldFigure, std::string, std::string>, Coverage> found;
  std::set<std::string> sources;
  for (const HeldRun& run : runs) sources.insert(run.source);
  for (const std::string& source : sources) {
    std::vector<HeldRun> others;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(others),
                 [&](const HeldRun& run) { return run.source != source; });
    const EvidenceTable table = evidence_of(others, "");
    for (const HeldRun& run : runs) {
      if (run.source != source) continue;
      const std::optional<Interval> interval = find_interval(table, run.of, run.figure);
      if (!interval) continue;
      const bool within = interval->low <= run.ratio && run.ratio <= interval->high;
      for (const std::string& left_out : {std::string(), source}) {
        for (const std::string& software : {std::string(), run.of.front()}) {
          Coverage& coverage = found[{run.figure, left_out, software}];
          coverage.figure = run.figure;
          coverage.source = left_out;
          coverage.software = software;
          ++coverage.rows;
          coverage.within += within ? 1 : 0;
        }
      }
    }
  }
  std::vector<Coverage> all;
  for (auto& [key, coverage] : found) all.push_back(std::move(coverage));
  return all;
}

}  // namespace stageline
