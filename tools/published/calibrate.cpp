// From rows of measurements to a calibration: which rows, of which device, and the fit.
#include "tools/published/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/inputs/clusters.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/published/few_runs.hpp"
#include "tools/published/on_threads.hpp"

namespace stageline {
namespace {

constexpr double optimizer_bytes = 30;  // a parameter, where no rate of the optimizer is built in

// The chip of a kind: those with memories of other sizes have the same rates.
std::string chip_of(const std::string& kind) {
  const ChipRates* const chip = find_chip_rates(kind);
  return chip == nullptr ? kind : std::string(chip->kind);
}

struct Candidate {
  const Point* point = nullptr;
  double seconds = 0;  // measured
  std::string kind;    // of device
  std::string reason;  // why it cannot be used; empty: it can
};

Candidate candidate_of(const Point& point) {
  Candidate candidate{&point, 0, "", ""};
  if (!point.split.empty() && point.split != "calibrate") {
    candidate.reason =
        fmt::format("its split is \"{}\": it is kept to judge the model by", point.split);
    return candidate;
  }
  const std::optional<double> seconds = measured_step(point);
  if (!seconds || !(*seconds > 0)) {
    candidate.reason = "it states no step time, nor tokens/s";
    return candidate;
  }
  candidate.seconds = *seconds;
  const Question question = question_of(point);
  candidate.reason = question.why_not;
  if (candidate.reason.empty()) candidate.kind = priced_device(question.request.setting.trace);
  return candidate;
}

// "a100 (116 rows), h100 (73)"
std::string kinds_in_words(const std::map<std::string, int>& counts) {
  std::vector<std::string> words;
  for (const auto& [chip, count] : counts) {
    words.push_back(fmt::format("{} ({}{})", chip, count,
                                words.empty() ? (count == 1 ? " row" : " rows") : ""));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// "a100" where a file has rows of it alone, else what was asked for.
std::string chosen_device(const std::vector<Candidate>& candidates,
                          const CalibrateRequest& request) {
  std::map<std::string, int> counts;
  std::vector<std::string> kinds;
  for (const Candidate& one : candidates) {
    if (!one.reason.empty()) continue;
    ++counts[chip_of(one.kind)];
    kinds.push_back(one.kind);
  }
  if (counts.empty()) return "";
  if (request.device.empty()) {
    if (counts.size() == 1) return counts.begin()->first;
    throw UsageError(
        fmt::format("{} has rows of {}, and a calibration is of one kind of device; choose it by "
                    "--kind {}",
                    request.file, kinds_in_words(counts), counts.begin()->first));
  }
  const bool named = counts.count(request.device) > 0 ||
                     std::find(kinds.begin(), kinds.end(), request.device) != kinds.end();
  if (named) return request.device;
  for (const auto& [chip, count] : counts) kinds.push_back(chip);
  throw UsageError(fmt::format("{} has no row of {}{}, but of {}", request.file, request.device,
                               did_you_mean(request.device, kinds), kinds_in_words(counts)));
}

KernelRates prior_of(const std::string& kind) { return rates_of(kind).rates; }

// A rate of 0 follows from the data sheet; its logarithm is asked for.
void state_optimizer(KernelRates& rates, const std::string& kind) {
  if (rates.optimizer > 0) return;
  for (const DeviceKind& known : known_kinds()) {
    if (known.name != kind) continue;
    rates.optimizer =
        optimizer_bytes / static_cast<double>(known.memory_bandwidth.bytes_per_second);
  }
}

class PointsFit {
 public:
  PointsFit(const std::vector<Point>& points, const CalibrateRequest& request) : request_(request) {
    for (const Point& point : points) candidates_.push_back(candidate_of(point));
  }

  PointsCalibration run() {
    const std::string device = chosen_device(candidates_, request_);
    choose_rows(device);
    KernelRates prior = prior_of(device);
    const std::vector<std::string>& free = request_.free;
    if (std::find(free.begin(), free.end(), "optimizer") != free.end() && !rows_.empty()) {
      state_optimizer(prior, rows_.front().kind);
    }
    refuse_what_fails(prior);
    list_refused();
    if (rows_.empty()) refuse_all();

    RateFitRequest fit;
    found_.few = free.empty() && rows_.size() <= most_few_runs;
    if (found_.few) {
      check_few_runs(few_runs(), request_.file);
      fit.every = true;
      fit.scale = few_runs_scale;
    }
    for (const Candidate& row : rows_) {
      fit.steps.push_back(
          {fmt::format("{}, tensor degree {}", row.point->model, row.point->tensor), row.seconds});
    }
    fit.predict = [this](std::size_t row, const KernelRates& rates) {
      return step_of(rows_[row], rates);
    };
    fit.prior = prior;
    for (const PointPrediction& prediction : at_prior_) fit.at_prior.push_back(prediction.step);
    fit.free = free;
    fit.threads = request_.threads;
    fit.interrupted = request_.interrupted;
    fit.progress = [this](const std::string& doing, int simulations) {
      if (request_.progress) request_.progress(doing, simulated_ + simulations);
    };
    found_.fit = fit_rates(fit);
    found_.fit.simulations += simulated_;
    for (const Candidate& row : rows_) found_.points.push_back(*row.point);
    state(device);
    return std::move(found_);
  }

 private:
  static PointPrediction prediction_of(const Candidate& row, const KernelRates& rates) {
    Calibration calibration;
    calibration.kind = row.kind;
    calibration.rates = rates;
    return predicted(question_of(*row.point, calibration));
  }
  static double step_of(const Candidate& row, const KernelRates& rates) {
    return prediction_of(row, rates).step;
  }

  std::vector<FewRun> few_runs() const {
    std::vector<FewRun> runs;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      runs.push_back({rows_[i].point, rows_[i].seconds, at_prior_[i]});
    }
    return runs;
  }

  void choose_rows(const std::string& device) {
    for (const Candidate& one : candidates_) {
      if (!one.reason.empty()) continue;
      if (one.kind == device || chip_of(one.kind) == device) {
        rows_.push_back(one);
      } else {
        ++found_.other_devices;
      }
    }
  }

  // Leaves the rows that can be simulated, and their predictions by these rates.
  void refuse_what_fails(const KernelRates& prior) {
    std::vector<PointPrediction> predictions(rows_.size());
    on_threads(
        rows_.size(), request_.threads, request_.interrupted,
        [&](std::size_t i) {
          try {
            predictions[i] = prediction_of(rows_[i], prior);
            if (!(predictions[i].step > 0)) {
              rows_[i].reason = "its step takes no time in the simulator";
            }
          } catch (const std::runtime_error& error) {
            rows_[i].reason = error.what();
          }
        },
        [&](std::size_t begun) {
          if (request_.progress) {
            request_.progress("simulating with the built-in constants", static_cast<int>(begun));
          }
        });
    simulated_ = static_cast<int>(rows_.size());
    std::vector<Candidate> rest;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].reason.empty()) {
        at_prior_.push_back(std::move(predictions[i]));
        rest.push_back(rows_[i]);
      } else {
        candidates_.push_back(rows_[i]);
      }
    }
    rows_ = std::move(rest);
  }

  void list_refused() {
    for (const UnreadRow& row : request_.unread) found_.refused.push_back({"", row.line, row.why});
    for (const Candidate& one : candidates_) {
      if (one.reason.empty()) continue;
      found_.refused.push_back({one.point->id, one.point->line, one.reason});
    }
    std::stable_sort(found_.refused.begin(), found_.refused.end(),
                     [](const RefusedPoint& a, const RefusedPoint& b) { return a.line < b.line; });
  }

  [[noreturn]] void refuse_all() const {
    if (found_.refused.empty()) throw UsageError(fmt::format("{} has no rows", request_.file));
    const RefusedPoint& first = found_.refused.front();
    throw UsageError(fmt::format("{}: none of {} row{} can be calibrated on; line {}: {}",
                                 request_.file, found_.refused.size(),
                                 found_.refused.size() == 1 ? "" : "s", first.line, first.reason));
  }

  void state(const std::string& device) {
    Calibration& calibration = found_.calibration;
    calibration.kind = device;
    calibration.rates = found_.fit.rates;
    const RateSet& chosen = found_.fit.sets[found_.fit.chosen];
    for (std::size_t c = 0; c < chosen.free.size(); ++c) {
      const FittedConstant& one = chosen.fit.constants[c];
      calibration.fitted.push_back({chosen.free[c], one.value, one.standard_error});
    }
    std::map<std::string, int> sources;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Candidate& row = rows_[i];
      calibration.residuals.push_back({row.point->id, row.seconds, chosen.fit.predicted[i]});
      ++sources[row.point->source];
    }
    std::vector<std::string> words;
    for (const auto& [source, count] : sources) {
      words.push_back(fmt::format("{} ({})", source.empty() ? "source not stated" : source, count));
    }
    calibration.source = fmt::format("{}, {} row{}: {}", request_.file, rows_.size(),
                                     rows_.size() == 1 ? "" : "s", fmt::join(words, "; "));
    calibration.date = request_.date;
    if (found_.few) calibration.rests_on = rested_on_by(few_runs(), chosen.fit.predicted);
  }

  const CalibrateRequest& request_;
  std::vector<Candidate> candidates_;      // by row, then those that failed when simulated
  std::vector<Candidate> rows_;            // fitted to
  std::vector<PointPrediction> at_prior_;  // of them, by the built-in constants
  int simulated_ = 0;                      // before the fit
  PointsCalibration found_;
};

}  // namespace

PointsCalibration calibrate_points(const std::vector<Point>& points,
                                   const CalibrateRequest& request) {
  return PointsFit(points, request).run();
}

}  // namespace stageline
