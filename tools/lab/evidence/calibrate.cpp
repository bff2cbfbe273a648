// Fits rate and op overhead by least squares.
#include "tools/lab/evidence/calibrate.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/lab/evidence/judge.hpp"

namespace stageline::lab {
namespace {

struct Observation {
  double cost = 0;      // s, sum over all the device's compute ops
  double ops = 0;       // number of compute ops
  double measured = 0;  // s, median
};

double mean_rate(const Cluster& cluster) {
  double sum = 0;
  for (const Device& device : cluster.devices) sum += device.rate;
  return sum / static_cast<double>(std::max<std::size_t>(cluster.devices.size(), 1));
}

std::vector<Observation> observations_of(const Evidence& evidence) {
  Evidence plain = evidence;  // as if nothing had been fitted
  plain.cluster = calibrated(plain.cluster, DeviceFit{});
  std::vector<Observation> all;
  for (const MeasuredCase& measured : plain.cases) {
    if (measured.held_out) continue;
    const Outcome outcome = study(case_of(plain, measured));
    for (std::size_t d = 0; d < measured.devices.size(); ++d) {
      Observation one;
      one.measured = to_seconds(median(measured.devices[d].busy));
      const auto& lane = outcome.timeline.lane(static_cast<int>(d), LaneKind::compute);
      for (const Span& span : lane) one.cost += to_seconds(span.end - span.start);
      one.ops = static_cast<double>(lane.size());
      if (one.measured > 0) all.push_back(one);
    }
  }
  return all;
}

double mean_error(const std::vector<Observation>& all, double slope, double overhead) {
  double sum = 0;
  for (const Observation& one : all) {
    sum += std::abs(slope * one.cost + overhead * one.ops - one.measured) / one.measured;
  }
  return sum / static_cast<double>(all.size());
}

}  // namespace

DeviceFit calibrate(const Evidence& evidence) {
  const std::vector<Observation> all = observations_of(evidence);
  if (all.size() < 3) {
    throw UsageError(
        "a calibration needs at least three busy times; mark more cases as not held out");
  }
  const auto rows = static_cast<Eigen::Index>(all.size());
  Eigen::MatrixXd terms(rows, 2);
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(rows);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const Observation& one = nth(all, i);
    terms(i, 0) = one.cost / one.measured;
    terms(i, 1) = one.ops / one.measured;
  }
  Eigen::VectorXd fit = terms.colPivHouseholderQr().solve(ones);
  if (!(fit(1) > 0) || !(fit(0) > 0)) {  // a negative overhead counts as 0
    const Eigen::VectorXd cost = terms.col(0);
    fit(0) = cost.dot(ones) / cost.squaredNorm();
    fit(1) = 0;
  }
  DeviceFit found;
  found.rate = 1 / fit(0);
  found.op_overhead = from_seconds(fit(1));
  found.observations = static_cast<int>(all.size());
  found.before = mean_error(all, 1, 0);
  found.after = mean_error(all, fit(0), fit(1));
  return found;
}

Cluster calibrated(Cluster cluster, const DeviceFit& found) {
  const double mean = mean_rate(cluster);
  for (Device& device : cluster.devices) {
    device.rate = found.rate * (device.rate / mean);
    device.memory_rate *= found.rate / mean;
    device.op_overhead = found.op_overhead;
  }
  return cluster;
}

}  // namespace stageline::lab
