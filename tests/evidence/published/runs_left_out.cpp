// Does a calibration on few published runs of a software predict its others, and does its range
// hold them?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/thorough.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/published/evidence.hpp"
#include "tools/published/few_runs.hpp"
#include "tools/published/fit.hpp"
#include "tools/published/on_threads.hpp"
#include "tools/published/vtrain.hpp"

namespace stageline::runs_left_out_tests {
namespace {

constexpr std::array counts{1, 2, 3, 6, 9};
constexpr int draws = 40;

// The rows of one source, software and chip.
struct Party {
  std::vector<const Point*> points;
  std::vector<PointPrediction> predictions;
  std::vector<double> measured;
  std::vector<FreeConstant> constants;
  LocalModel local;
};
using PartyName = std::tuple<std::string, std::string, std::string>;

// A run that was left out of a fit to `count` others of its party.
struct LeftOut {
  const Point* point = nullptr;
  PartyName party;
  RunClass of;
  int count = 0;
  int draw = 0;
  double before = 1;  // measured / predicted by the built-in constants
  double after = 1;
};

std::vector<Point> shared_points() {
  const char* const data = std::getenv("STAGELINE_DATA");
  const std::filesystem::path folder = data == nullptr ? "" : data;
  std::vector<Point> points;
  for (const char* const name :
       {"published/points.csv", "published/points_2026.csv", "vtrain/multi_node_calibration.csv"}) {
    const std::string file = (folder / name).string();
    if (!std::filesystem::exists(file)) return {};
    const std::string csv = read_text(file);
    const PointsFile read =
        is_vtrain(csv) ? read_vtrain_file(csv, file) : read_points_file(csv, file);
    points.insert(points.end(), read.points.begin(), read.points.end());
  }
  return points;
}

std::optional<PointPrediction> predicted_with(const Point& point, const Calibration& calibration) {
  try {
    return predicted(question_of(point, calibration));
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

Calibration built_in(const Point& point) {
  const Question question = question_of(point);
  if (!question.why_not.empty()) return {};
  const std::string kind = priced_device(question.request.setting.trace);
  const ChipRates* const chip = find_chip_rates(kind);
  Calibration calibration;
  calibration.kind = chip == nullptr ? kind : std::string(chip->kind);
  calibration.rates = rates_of(calibration.kind).rates;
  return calibration;
}

std::map<PartyName, Party> parties_of(const std::vector<Point>& points) {
  std::map<PartyName, Party> parties;
  for (const Point& point : points) {
    if (point.kind.find("closed form") != std::string::npos) continue;
    const Calibration calibration = built_in(point);
    if (calibration.kind.empty()) continue;
    const auto prediction = predicted_with(point, calibration);
    if (!prediction || !prediction->of) continue;
    std::optional<double> measured = measured_step(point);
    if (!measured) {
      const auto rate = step_of_rate(point, *prediction);
      if (!rate) continue;
      measured = rate->seconds;
    }
    Party& party = parties[{point.source, prediction->software, calibration.kind}];
    party.points.push_back(&point);
    party.predictions.push_back(*prediction);
    party.measured.push_back(*measured);
  }
  return parties;
}

void take_slopes(const std::string& kind, Party& party) {
  Calibration calibration;
  calibration.kind = kind;
  calibration.rates = rates_of(kind).rates;
  std::vector<double> values;
  std::vector<const KernelConstant*> known;
  for (const KernelConstant& one : kernel_constants()) {
    const double prior = calibration.rates.*one.member;
    if (!(prior > 0)) continue;
    known.push_back(&one);
    const double least = std::max(one.least, prior * std::exp(-6 * one.spread));
    party.constants.push_back({std::string(one.name), prior, one.spread, least, one.most});
    values.push_back(prior);
  }
  std::vector<double> at;
  for (const PointPrediction& one : party.predictions) at.push_back(one.step);
  const PredictPoints predict = [&](const std::vector<double>& asked) {
    Calibration there = calibration;
    for (std::size_t c = 0; c < known.size(); ++c) there.rates.*known[c]->member = asked[c];
    std::vector<double> steps(at.size());
    on_threads(
        at.size(), 2, nullptr,
        [&](std::size_t i) { steps[i] = predicted(question_of(*party.points[i], there)).step; },
        [](std::size_t) {});
    return steps;
  };
  party.local = local_model(predict, party.constants, values, at);
}

void leave_out(const PartyName& name, const Party& party, std::vector<LeftOut>& all) {
  const std::size_t rows = party.points.size();
  for (const int count : counts) {
    if (rows < static_cast<std::size_t>(count) + 3) continue;
    std::mt19937 random(7);
    for (int draw = 0; draw < draws; ++draw) {
      std::vector<std::size_t> order(rows);
      for (std::size_t i = 0; i < rows; ++i) order[i] = i;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        std::swap(order[i], order[i + random() % (rows - i)]);
      }
      std::vector<bool> kept(rows, false);
      for (int i = 0; i < count; ++i) kept[order[static_cast<std::size_t>(i)]] = true;
      FitOptions options;
      options.scale = few_runs_scale;
      const FitResult fit = fit_local(party.measured, party.local, party.constants, kept, options);
      for (std::size_t i = 0; i < rows; ++i) {
        if (kept[i]) continue;
        all.push_back({party.points[i], name, *party.predictions[i].of, count, draw,
                       party.measured[i] / party.predictions[i].step,
                       party.measured[i] / fit.predicted[i]});
      }
    }
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Of the error of the rest, by draw; then of the draws.
double median_error(const std::vector<LeftOut>& all, const PartyName& party, int count,
                    double LeftOut::*ratio) {
  std::map<int, std::vector<double>> errors;
  for (const LeftOut& one : all) {
    if (one.party != party || one.count != count) continue;
    errors[one.draw].push_back(std::abs(1 / (one.*ratio) - 1));
  }
  std::vector<double> medians;
  for (auto& [draw, of_draw] : errors) medians.push_back(median(of_draw));
  return median(medians);
}

bool is_dense(const LeftOut& one) { return one.of[1] == "dense"; }

// Half widths of classes in logarithms, each looked up once.
class HalfWidths {
 public:
  explicit HalfWidths(const EvidenceTable& table) : table_(table) {}

  double operator()(const RunClass& of) {
    const auto [known, is_new] = known_.emplace(widened(of, chip_trait + 2), 0);
    if (is_new) {
      const std::optional<Interval> interval =
          find_interval(table_, known->first, HeldFigure::step);
      known->second = std::log(interval->high / interval->low) / 2;
    }
    return known->second;
  }

 private:
  const EvidenceTable& table_;
  std::map<RunClass, double> known_;
};

// log(after) over the half width of its class, by run; each source has the same weight.
class Scores {
 public:
  void add(const LeftOut& one, double half) {
    scores_[std::get<0>(one.party)].push_back(std::log(one.after) / half);
    runs_.insert(one.point);
  }

  Narrowing narrowing(int count) const { return {count, -quantile(-1), quantile(1)}; }

 private:
  double quantile(int sign) const {
    std::vector<std::pair<double, double>> weighted;
    for (const auto& [source, scores] : scores_) {
      for (const double score : scores) {
        weighted.emplace_back(sign * score, 1.0 / static_cast<double>(scores.size()));
      }
    }
    std::sort(weighted.begin(), weighted.end());
    const double wanted =
        0.9 * static_cast<double>(scores_.size()) * (1 + 1 / static_cast<double>(runs_.size()));
    double sum = 0;
    for (const auto& [value, weight] : weighted) {
      sum += weight;
      if (sum >= wanted - 1e-9) return value;
    }
    return weighted.back().first;
  }

  std::map<std::string, std::vector<double>> scores_;
  std::set<const Point*> runs_;
};

Narrowing narrowing_by(const std::vector<LeftOut>& all, HalfWidths& half_width, int count,
                       const std::string& without) {
  Scores scores;
  for (const LeftOut& one : all) {
    if (one.count != count || !is_dense(one) || std::get<0>(one.party) == without) continue;
    scores.add(one, half_width(one.of));
  }
  return scores.narrowing(count);
}

struct Held {
  double within = 0;
  double all = 0;
  void add(bool is_within) {
    within += is_within ? 1 : 0;
    all += 1;
  }
  double share() const { return all > 0 ? within / all : 0; }
};

}  // namespace

TEST_CASE("few runs: three of a software predict its others, and ranges hold those left out") {
  const std::vector<Point> points = shared_points();
  if (points.empty() || !test::thorough) {
    MESSAGE("skipped: STAGELINE_DATA holds no published rows");
    return;
  }
  std::map<PartyName, Party> parties = parties_of(points);
  std::vector<LeftOut> all;
  for (auto& [name, party] : parties) {
    if (party.points.size() < 6) continue;
    take_slopes(std::get<2>(name), party);
    leave_out(name, party, all);
  }
  std::vector<double> before;
  std::vector<double> after;
  for (const auto& [name, party] : parties) {
    if (party.points.size() < 6) continue;
    const auto& [source, software, chip] = name;
    std::string text =
        fmt::format("{} | {} | {} | {} | {:.1f} %", source, software, chip, party.points.size(),
                    100 * median_error(all, name, 3, &LeftOut::before));
    before.push_back(median_error(all, name, 3, &LeftOut::before));
    after.push_back(median_error(all, name, 3, &LeftOut::after));
    for (const int count : {1, 2, 3}) {
      text += fmt::format(" | {:.1f} %", 100 * median_error(all, name, count, &LeftOut::after));
    }
    MESSAGE(text);
  }
  MESSAGE("median of parties, before: " << median(before) << ", on three rows: " << median(after));
  CHECK(median(after) <= 0.05);
  CHECK(median(after) < median(before));

  const std::vector<HeldRun> held = held_runs(points);
  const std::string date;
  const EvidenceTable whole = evidence_of(held, date);
  HalfWidths of_whole(whole);
  for (const int count : counts) {
    const Narrowing& stated = narrowing_of(count);
    const Narrowing made = narrowing_by(all, of_whole, count, "");
    MESSAGE(count << " rows: " << made.low << " to " << made.high);
    CHECK(stated.rows == count);
    CHECK(made.low == doctest::Approx(stated.low).epsilon(0.05));
    CHECK(made.high == doctest::Approx(stated.high).epsilon(0.05));
  }
  std::set<std::string> sources;
  for (const LeftOut& one : all) sources.insert(std::get<0>(one.party));
  std::map<std::pair<int, std::string>, Held> coverage;
  for (const std::string& source : sources) {
    std::vector<HeldRun> others;
    std::copy_if(held.begin(), held.end(), std::back_inserter(others),
                 [&](const HeldRun& run) { return run.source != source; });
    const EvidenceTable table = evidence_of(others, date);
    HalfWidths half_width(table);
    for (const int count : counts) {
      const Narrowing narrowing = narrowing_by(all, half_width, count, source);
      for (const LeftOut& one : all) {
        if (one.count != count || std::get<0>(one.party) != source) continue;
        if (is_dense(one)) {
          const double score = std::log(one.after) / half_width(one.of);
          const bool within = score >= narrowing.low && score <= narrowing.high;
          coverage[{count, ""}].add(within);
          coverage[{count, source}].add(within);
        } else {
          const auto interval = find_interval(table, one.of, HeldFigure::step);
          coverage[{count, "experts, range of the class"}].add(one.after >= interval->low &&
                                                               one.after <= interval->high);
        }
      }
    }
  }
  for (const auto& one : coverage) {
    const Held& held_ones = one.second;
    MESSAGE(one.first.first << " rows, " << one.first.second << ": " << held_ones.share() << " of "
                            << held_ones.all);
    if (!one.first.second.empty()) continue;
    CHECK(held_ones.share() >= 0.75);
    CHECK(held_ones.share() <= 0.85);
  }
}

}  // namespace stageline::runs_left_out_tests
