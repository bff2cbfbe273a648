// Rates of a chip fitted to published or own measurements of training steps.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tools/published/points.hpp"
#include "tools/published/rate_fit.hpp"

namespace stageline {

struct CalibrateRequest {
  std::string file;                 // of the points, for the provenance
  std::vector<UnreadRow> unread{};  // rows of the file that cannot be read: refused
  std::string device;               // kind of device, "a100", with memories of any size where the
                                    // chip is the same; empty: the one that all rows are of
  std::vector<std::string> free;    // constants; empty: chosen by cross-validation
  std::string date;                 // ISO 8601
  int threads = 1;                  // the result does not depend on it
  /// FitInterrupted is thrown where it is set.
  const std::atomic<bool>* interrupted = nullptr;
  /// Called on the caller's thread; may be empty.
  std::function<void(const std::string& doing, int simulations)> progress{};
};

struct RefusedPoint {
  std::string id;
  int line = 0;        // of the file
  std::string reason;  // one sentence
};

struct PointsCalibration {
  Calibration calibration;  // residuals in the order of `points`
  RateFit fit;              // its steps are `points`
  std::vector<Point> points;
  std::vector<RefusedPoint> refused;
  int other_devices = 0;  // rows that could be asked, of devices that were not chosen
  bool few = false;       // the posterior of every constant that few rows depend on
};

/// Rows to judge by (`split` other than "calibrate"), without a step time, and those that the
/// simulator does not know or cannot run are refused. A group of the cross-validation is a model
/// with a tensor degree. The priors are the built-in rates of the chip. Of most_few_runs rows or
/// fewer, where no constants are named, every constant that they depend on is free, held by its
/// prior, and the calibration says what it rests on. Throws UsageError where all rows are refused,
/// where they are of several kinds of device and none is chosen, and as check_few_runs() and
/// fit_rates().
PointsCalibration calibrate_points(const std::vector<Point>& points,
                                   const CalibrateRequest& request);

/// "0.839", "2.2 ms", "250 rows".
std::string constant_text(const KernelConstant& constant, double value);

/// What was fitted, to what, and how well: tables and sentences. `width`: columns of a line; 0:
/// any.
std::string calibration_text(const PointsCalibration& found, const std::string& file, int width);

/// The same as JSON; tools/report/json/README.md lists the keys.
std::string calibration_json(const PointsCalibration& found, const std::vector<std::string>& notes);

}  // namespace stageline
