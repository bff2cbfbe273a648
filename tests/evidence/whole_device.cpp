// Is a case priced with the whole trace where a device has the whole model?
#include "tools/lab/evidence/whole_device.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/evidence/small_evidence.hpp"
#include "tools/study/study.hpp"

namespace stageline::whole_device_tests {
namespace {

bool has_whole(const std::string& schedule, const std::string& partition = "balanced") {
  const lab::Evidence evidence = test::small_evidence();
  lab::MeasuredCase asked = evidence.cases[0];  // four equal layers on two devices
  asked.schedule = schedule;
  asked.partition = partition;
  const Outcome outcome = study(lab::case_of(evidence, asked));
  return lab::has_whole_device(lab::trace_of(evidence, asked), outcome.plan.partition,
                               outcome.program.placement);
}

}  // namespace

TEST_CASE("a device has the whole model where stages go both ways, are replicated or apart") {
  for (const std::string whole :
       {"chimera", "gems", "dualpipe", "pipedream:replicas=2", "pipefb"}) {
    CAPTURE(whole);
    CHECK(has_whole(whole));
  }
  for (const std::string half : {"gpipe", "1f1b", "interleaved_1f1b", "zb_v", "dualpipe_v"}) {
    CAPTURE(half);
    CHECK_FALSE(has_whole(half));
  }
}

TEST_CASE("a stage of three quarters of the model is none of the whole") {
  CHECK_FALSE(has_whole("1f1b", "0-0,1-3"));
  lab::Evidence evidence = test::small_evidence();
  evidence.traces[0].layers[1].forward += std::chrono::microseconds(1);
  const Outcome outcome = study(lab::case_of(evidence, evidence.cases[1]));  // cut 0-0,1-3
  CHECK(
      lab::has_whole_device(evidence.traces[0], outcome.plan.partition, outcome.program.placement));
}

}  // namespace stageline::whole_device_tests
