// Does a calibration on few runs of a software predict its others, and does its range hold them?
#include "tools/published/few_runs.hpp"

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

#include "cost_models/transformers/priced_language.hpp"
#include "sim/base/errors.hpp"
#include "tests/thorough.hpp"
#include "tools/answers/simulated.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/published/calibrate.hpp"
#include "tools/published/evidence.hpp"
#include "tools/published/fit.hpp"
#include "tools/published/logged_steps.hpp"
#include "tools/published/on_threads.hpp"
#include "tools/published/vtrain.hpp"
#include "traces/logs/training_log.hpp"

namespace stageline::few_runs_tests {
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

// Small GPTs of Megatron-Core on one machine of A100, as measured with these rates.
std::vector<Point> small_runs(const KernelRates& rates) {
  std::string csv =
      "id,source,model,layers,hidden,heads,vocab,seq,hardware,gpus,framework,precision,tp,pp,dp,"
      "micro_batch,global_batch,schedule,recompute,step_time_s,tokens_per_s_per_gpu,log\n";
  int id = 0;
  for (const int hidden : {2048, 4096, 8192}) {
    for (const int tensor : {1, 4}) {
      csv += fmt::format(
          "p{0},mine,{1} wide,4,{1},32,51200,2048,A100-80GB SXM,{2},Megatron-Core,bf16,{3},2,1,1,16,"
          "1f1b,none,1,,\n",
          ++id, hidden, 2 * tensor, tensor);
    }
  }
  std::vector<Point> points = read_points(csv, "mine.csv");
  const Calibration truth{"a100", rates, {}, {}, "", ""};
  for (Point& point : points) point.step_time = predicted(question_of(point, truth)).step;
  return points;
}

KernelRates slower() {
  KernelRates rates = find_chip_rates("a100")->rates;
  rates.gemm *= 0.88;
  rates.memory *= 0.9;
  return rates;
}

CalibrateRequest request() {
  CalibrateRequest asked;
  asked.file = "mine.csv";
  asked.date = "2026-11-30";
  return asked;
}

std::vector<Point> first(std::vector<Point> points, std::size_t count) {
  points.resize(count);
  return points;
}

std::optional<Interval> range_of_step(const std::string& trace, const std::string& calibration) {
  SimulationQuestion question;
  question.setting.trace = trace;
  question.setting.cluster.cluster = "a100x8";
  question.setting.calibration = calibration;
  question.setting.microbatches = 8;
  question.setting.degrees.pipeline = 8;
  const Simulation found = answer(question);
  return intervals_of(found.asked.model, found.asked.ranked.get()).step;
}

std::string refusal(const std::vector<Point>& points) {
  try {
    calibrate_points(points, request());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("few runs: three runs give every constant a posterior, which predicts the others") {
  const std::vector<Point> points = small_runs(slower());
  const PointsCalibration found = calibrate_points(first(points, 3), request());
  CHECK(found.few);
  CHECK(found.calibration.fitted.size() > 3);
  const KernelRates& prior = find_chip_rates("a100")->rates;
  CHECK(found.calibration.rates.gemm < prior.gemm);
  for (const Calibration::Fitted& one : found.calibration.fitted) {
    CHECK(one.standard_error > 0);  // no constant is known from three rows alone
  }
  for (std::size_t i = 3; i < points.size(); ++i) {
    CAPTURE(i);
    const double before = predicted(question_of(points[i])).step / *points[i].step_time - 1;
    const double after =
        predicted(question_of(points[i], found.calibration)).step / *points[i].step_time - 1;
    CHECK(std::abs(after) < 0.03);
    CHECK(std::abs(after) < std::abs(before) / 2);
  }
}

TEST_CASE("few runs: more rows draw the constants nearer") {
  const std::vector<Point> points = small_runs(slower());
  double last = find_chip_rates("a100")->rates.gemm;
  for (const std::size_t count : {1, 3, 6}) {
    const double now = calibrate_points(first(points, count), request()).calibration.rates.gemm;
    CAPTURE(count);
    CHECK(now < last);
    last = now;
  }
  CHECK(last > slower().gemm * 0.98);
}

TEST_CASE("few runs: the file says what it rests on, and answers of that class carry the range") {
  const PointsCalibration found = calibrate_points(first(small_runs(slower()), 3), request());
  REQUIRE(found.calibration.rests_on.size() == 1);
  const CalibratedRuns& runs = found.calibration.rests_on.front();
  CHECK(runs.software == "megatron-core-2024");
  CHECK(runs.kind == "dense");
  CHECK(runs.products == "16");
  CHECK(runs.rows == 3);
  const std::string text = print_calibration(found.calibration);
  CHECK(read_calibration(text, "mine.json") == found.calibration);
  CHECK(
      calibration_text(found, "mine.csv", 0)
          .find("It rests on 3 runs of dense models with 16-bit products by megatron-core-2024: 80 "
                "% of others lie within") != std::string::npos);

  const std::string dense = "model:llama3-8b@a100,software=megatron-core-2024";
  const std::optional<Interval> before = range_of_step(dense, "");
  const std::optional<Interval> after = range_of_step(dense, text);
  REQUIRE(before);
  REQUIRE(after);
  CHECK(before->calibrated == 0);
  CHECK(after->calibrated == 3);
  CHECK(after->low == doctest::Approx(runs.low));
  CHECK(after->high == doctest::Approx(runs.high));
  CHECK(after->high - after->low < before->high - before->low);
  CHECK(provenance_of(*after).find("a calibration rests on 3 of them") != std::string::npos);
  // Of other software, experts, and rates by hand nothing is claimed.
  for (const char* const other : {"model:llama3-8b@a100", "model:llama3-8b@a100,software=fsdp-2023",
                                  "model:mixtral-8x7b@a100,software=megatron-core-2024",
                                  "model:llama3-8b@a100,software=megatron-core-2024,gemm=0.7"}) {
    CAPTURE(other);
    REQUIRE(range_of_step(other, text));
    CHECK(range_of_step(other, text)->calibrated == 0);
    CHECK(range_of_step(other, text)->high == range_of_step(other, "")->high);
  }
}

TEST_CASE("few runs: a file that rests on what cannot be is refused by place") {
  const std::string good =
      R"({"software": "fsdp-2023", "kind": "dense", "products": "16", "rows": 3, "low": 0.9, "high": 1.1})";
  const auto refused = [&](const std::string& old, const std::string& by) {
    std::string item = good;
    item.replace(item.find(old), old.size(), by);
    return R"({"format": "stageline-calibration 1", "kind": "a100", "rates": {}, "rests_on": [)" +
           item + "]}";
  };
  CHECK(read_calibration(refused(": 3,", ": 4,"), "f.json").rests_on.front().rows == 4);
  const std::pair<const char*, std::pair<const char*, const char*>> wrong[] = {
      {"/rests_on/0/software: must be one of megatron-2021,", {"fsdp-2023", "mine"}},
      {"/rests_on/0/kind: must be one of dense, experts, not plain", {"dense", "plain"}},
      {"/rests_on/0/rows: must be a whole number from 1 on, not 0.5", {": 3,", ": 0.5,"}},
      {"/rests_on/0: the prediction must be within its range", {"0.9,", "1.05,"}},
  };
  for (const auto& one : wrong) {
    const std::string words = one.first;
    const auto& change = one.second;
    CAPTURE(words);
    try {
      read_calibration(refused(change.first, change.second), "f.json");
      FAIL("nothing was thrown");
    } catch (const TraceError& error) {
      const std::string said = error.what();
      CAPTURE(said);
      const std::string pointer = words.substr(0, words.find(':'));
      const std::string rest = words.substr(pointer.size() + 2);
      CHECK(said.find(pointer) != std::string::npos);
      CHECK(said.find(rest) != std::string::npos);
    }
  }
}

TEST_CASE("few runs: rows that disagree leave a range that holds them") {
  std::vector<Point> points = first(small_runs(find_chip_rates("a100")->rates), 1);
  points.push_back(points[0]);
  points[1].step_time = *points[1].step_time * 1.6;
  const Calibration calibration = calibrate_points(points, request()).calibration;
  REQUIRE(calibration.rests_on.size() == 1);
  const auto left = [&](std::size_t row) {
    return calibration.residuals[row].measured / calibration.residuals[row].predicted;
  };
  CHECK(calibration.rests_on.front().low <= left(0));
  CHECK(calibration.rests_on.front().high >= left(1));
  CHECK(left(1) / left(0) == doctest::Approx(1.6));
}

TEST_CASE("few runs: a kind without enough sources, or never held, keeps its range") {
  const RunClass dense{"known", "dense", "a100", "16", "whole", "short"};
  const EvidenceTable& table = bundled_evidence();
  const std::optional<Interval> one = remaining_interval(dense, table, 1);
  const std::optional<Interval> nine = remaining_interval(dense, table, 9);
  REQUIRE(one);
  REQUIRE(nine);
  CHECK(nine->high - nine->low < one->high - one->low);
  RunClass other = dense;
  other[1] = "experts";
  CHECK_FALSE(remaining_interval(other, table, 3));
  other = dense;
  other[chip_trait] = other_chip;
  CHECK_FALSE(remaining_interval(other, table, 3));
  const CalibratedRuns runs{"fsdp-2023", "experts", "16", 1};
  CHECK(calibrated_note(runs) ==
        "calibrated on 1 run (fsdp-2023, experts, products 16): the range of their class stays");
}

TEST_CASE("few runs: what cannot be is refused in a sentence") {
  const std::vector<Point> good = first(small_runs(slower()), 3);
  std::vector<Point> points = good;
  points[1].step_time = *points[1].step_time / 50;
  CHECK(refusal(points).find("mine.csv, line 3: a step of ") == 0);
  CHECK(refusal(points).find(" % of the devices' peak, more than there is") != std::string::npos);
  points = good;
  points[2].step_time = *points[2].step_time * 1000;
  CHECK(refusal(points).find("mine.csv, line 4: a step of ") == 0);
  CHECK(refusal(points).find("farther than any published run") != std::string::npos);
  points = good;
  points[0].tokens_per_gpu_second = 1000;
  CHECK(refusal(points).find("mine.csv, line 2: step_time_s is ") == 0);
  CHECK(refusal(points).find("they contradict each other") != std::string::npos);
  points = good;
  points[1].framework = "Megatron-DeepSpeed";
  CHECK(refusal(points) ==
        "mine.csv has runs of megatron-core-2024 (line 2) and of deepspeed-2021 (line 3), and a "
        "calibration on few rows is of one software; give the rows of one");
}

TEST_CASE("few runs: a row may name the log of its training") {
  const char* const root = std::getenv("STAGELINE_SOURCE");
  REQUIRE(root != nullptr);
  const std::string file = std::string(root) + "/tests/traces/logs/mine.csv";
  const auto named = [](const std::string& log, std::int64_t batch) {
    Point point;
    point.line = 2;
    point.log = log;
    point.global_batch = batch;
    return std::vector<Point>{point};
  };
  std::vector<Point> points = named("megatron.txt", 0);
  CHECK(take_logged_steps(points, file).size() == 1);  // on an update that was skipped
  REQUIRE(points[0].step_time);
  CHECK(points[0].global_batch > 0);
  const double step = *points[0].step_time;
  const LogSummary summary =
      summary_of(read_printed_log(read_text(std::string(root) + "/tests/traces/logs/megatron.txt"),
                                  "megatron.txt"),
                 "megatron.txt");
  CHECK(step == summary.seconds);
  points = named("torchtitan.txt", 8);
  take_logged_steps(points, file);
  CHECK(points[0].tokens_per_gpu_second);
  points = named("trainer_state.json", 0);
  CHECK(take_logged_steps(points, file).size() == 1);

  points = named("megatron.txt", 3);
  CHECK_THROWS_WITH_AS(
      take_logged_steps(points, file),
      doctest::Contains("line 2: global_batch is 3, and the log megatron.txt says"), UsageError);
  points = named("deepspeed.txt", 0);
  CHECK_THROWS_WITH_AS(take_logged_steps(points, file), doctest::Contains("fill in global_batch"),
                       UsageError);
  points = named("megatron.txt", 0);
  points[0].step_time = 1;
  CHECK_THROWS_WITH_AS(take_logged_steps(points, file),
                       doctest::Contains("a log and a measured step"), UsageError);
}

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

}  // namespace stageline::few_runs_tests
