// Does an answer hold what the cluster says about devices that slow each other, and about replicas
// of unequal speed?
#include <doctest/doctest.h>

#include <string>

#include "sim/timeline.hpp"
#include "tests/make.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::interference_tests {
namespace {

// Two equal layers, F = 1 ms and B = 2 ms, on devices without links.
Case case_of(const std::string& schedule, int devices, int layers = 2) {
  Case asked;
  asked.model = uniform_model("layers=" + std::to_string(layers));
  asked.cluster = uniform_cluster(devices, std::nullopt, std::nullopt);
  asked.spec = test::spec(schedule);
  asked.microbatches = 8;
  return asked;
}

double milliseconds(const Outcome& outcome) { return 1e3 * to_seconds(outcome.step_time); }

}  // namespace

TEST_CASE("ops that overlap in time are slowed by the cluster's interference, others are not") {
  Case asked = case_of("gpipe", 2);
  CHECK(milliseconds(study(asked)) == doctest::Approx(27));
  asked.cluster.interference = {2.0};
  // F: 1 alone, 7 beside another, 1 alone; B likewise, twice as long.
  CHECK(milliseconds(study(asked)) == doctest::Approx(48).epsilon(1e-3));
  Case one_by_one = case_of("naive", 2);
  const double alone = milliseconds(study(one_by_one));
  one_by_one.cluster.interference = {2.0};
  CHECK(milliseconds(study(one_by_one)) == doctest::Approx(alone));
}

TEST_CASE("devices of different hosts do not slow each other") {
  Case asked = case_of("gpipe", 2);
  asked.cluster.interference = {2.0};
  asked.cluster.hosts = {{.name = "a", .memory = {}}, {.name = "b", .memory = {}}};
  asked.cluster.devices[0].host = 0;
  asked.cluster.devices[1].host = 1;
  CHECK(milliseconds(study(asked)) == doctest::Approx(27));
}

TEST_CASE("each replica of a stage runs at the rate of its own device") {
  Case asked = case_of("pipedream:replicas=2-1", 3);
  asked.cluster.devices[1].rate = 0.5;
  const Outcome outcome = study(asked);
  for (int device = 0; device < 2; ++device) {
    CAPTURE(device);
    int forwards = 0;
    for (const Span& span : outcome.timeline.lane(device, LaneKind::compute)) {
      if (span.op.kind != OpKind::forward) continue;
      ++forwards;
      CHECK(span.end - span.start == Time{(device + 1) * 1'000'000'000LL});
    }
    CHECK(forwards > 0);
  }
}

}  // namespace stageline::interference_tests
