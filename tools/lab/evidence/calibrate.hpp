// Fits the cluster's parameters to measured programs.
#pragma once

#include "tools/lab/evidence/evidence.hpp"

namespace stageline::lab {

/// The fitted parameters, and the data they rest on.
struct DeviceFit {
  double rate = 1;       // of every device
  Time op_overhead{};    // of every device; never below 0
  int observations = 0;  // number of busy times: devices of the cases fitted
  double before = 0;     // mean error of those busy times without the fit, as a share
  double after = 0;      // mean error with the fit
};

/// Least squares (Eigen) over the busy times of every device in the cases that are not held out:
/// busy = cost / rate + ops × overhead, each divided by the measured time: relative errors count.
/// The two parameters absorb contention between lanes, first touches and start-up costs; the
/// layers' costs were measured alone. Throws UsageError for fewer than three busy times.
DeviceFit calibrate(const Evidence& evidence);

/// The evidence's cluster with the fitted parameters.
Cluster calibrated(Cluster cluster, const DeviceFit& found);

}  // namespace stageline::lab
