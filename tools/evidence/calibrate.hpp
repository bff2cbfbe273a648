// From measured programs to the cluster that explains them.
#pragma once

#include "tools/evidence/evidence.hpp"

namespace stageline {

/// What a fit found, and on how much.
struct Calibration {
  double rate = 1;       // of every device
  Time op_overhead{};    // of every device; never below 0
  int observations = 0;  // busy times: devices of the cases that it saw
  double before = 0;     // mean error of those busy times without the fit, as a share
  double after = 0;      // with it
};

/// Least squares (Eigen) over the busy times of every device in the cases that are not held out:
/// busy = cost / rate + ops × overhead, each weighed by its own size, so that shares count.
/// Computing beside another lane, its first touches and its starting costs are in these two; the
/// layers' costs were measured alone. Throws UsageError where fewer than three busy times are
/// there.
Calibration calibrate(const Evidence& evidence);

/// The evidence's cluster with what was found.
Cluster calibrated(Cluster cluster, const Calibration& found);

}  // namespace stageline
