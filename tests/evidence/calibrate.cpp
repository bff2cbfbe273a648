// Does the fit find what a machine was made with, from the programs that it may see alone?
#include "tools/lab/evidence/calibrate.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/evidence/small_evidence.hpp"

namespace stageline::calibrate_tests {
namespace {

// Measured as if devices ran at `rate` and took `overhead` more for each op.
lab::Evidence made_with(double rate, Time overhead) {
  lab::Evidence evidence = test::small_evidence();
  lab::Evidence truth = evidence;
  for (Device& device : truth.cluster.devices) {
    device.rate = rate;
    device.op_overhead = overhead;
  }
  for (std::size_t i = 0; i < evidence.cases.size(); ++i) {
    lab::MeasuredCase& measured = evidence.cases[i];
    const lab::Prediction real = lab::predict(truth, measured);
    measured.held_out = i % 2 == 0;
    const std::size_t runs = measured.makespan.size();
    for (std::size_t d = 0; d < measured.devices.size(); ++d) {
      measured.devices[d].busy.assign(runs, real.devices[d].busy);
    }
    if (measured.held_out) measured.devices[0].busy.assign(runs, Time{1});  // not to be looked at
  }
  return evidence;
}

}  // namespace

TEST_CASE("rate and overhead are found again, whatever the cluster said before") {
  lab::Evidence evidence = made_with(0.8, std::chrono::microseconds(50));
  for (Device& device : evidence.cluster.devices) device.rate = 3;
  const lab::DeviceFit found = lab::calibrate(evidence);
  CHECK(found.rate == doctest::Approx(0.8).epsilon(1e-6));
  CHECK(to_seconds(found.op_overhead) == doctest::Approx(50e-6).epsilon(1e-4));
  CHECK(found.observations >= 3);
  CHECK(found.before > 0.1);
  CHECK(found.after < 1e-6);
  const Cluster cluster = calibrated(evidence.cluster, found);
  CHECK(cluster.devices[1].rate == found.rate);
  CHECK(cluster.devices[1].op_overhead == found.op_overhead);
}

TEST_CASE("what the lanes are to each other stays") {
  lab::Evidence evidence = made_with(0.8, Time{});
  evidence.cluster.devices[0].rate = 3;
  evidence.cluster.devices[1].rate = 1;
  const Cluster cluster = lab::calibrated(evidence.cluster, {.rate = 0.5});
  CHECK(cluster.devices[0].rate == doctest::Approx(0.75));
  CHECK(cluster.devices[1].rate == doctest::Approx(0.25));
}

TEST_CASE("an overhead is never below nothing") {
  const lab::DeviceFit found = lab::calibrate(made_with(1.25, Time{}));
  CHECK(found.rate == doctest::Approx(1.25).epsilon(1e-6));
  CHECK(found.op_overhead >= Time{});
  CHECK(to_seconds(found.op_overhead) < 1e-9);
}

TEST_CASE("a calibration without cases to see is refused") {
  lab::Evidence evidence = test::small_evidence();
  for (lab::MeasuredCase& measured : evidence.cases) measured.held_out = true;
  CHECK_THROWS_WITH_AS(lab::calibrate(evidence), doctest::Contains("three busy times"), UsageError);
}

}  // namespace stageline::calibrate_tests
