// Are files of perturbations read, and bad ones refused with the place of what is wrong?
#include "tools/inputs/perturbation_file.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"

namespace stageline::perturbation_file_tests {

TEST_CASE("a file says what the short forms say, and samples") {
  const Perturbation read = read_perturbation(
      R"({"format": "stageline-perturbation 1", "seed": 7,
          "jitter": {"law": "log_normal", "variation": 0.05, "transfers": true},
          "slow": [{"name": "gpu2", "factor": 1.2, "probability": 0.1}],
          "pauses": [{"every": 100, "time_us": 50000}]})",
      "p.json");
  CHECK(read.seed == 7);
  CHECK(read.jitter == parse_jitter("5%,transfers", "--jitter"));
  CHECK(read.slow == parse_slow_items("gpu2:1.2@0.1", "--sometimes-slow"));
  CHECK(read.pauses == parse_pauses("100:50ms", "--pause"));
  const Perturbation samples = read_perturbation(
      R"({"format": "stageline-perturbation 1", "jitter": {"law": "samples", "samples": [1, 1.5]}})",
      "p.json");
  CHECK(samples.jitter.law == Jitter::Law::samples);
  CHECK(samples.jitter.samples == std::vector<double>{1, 1.5});
}

TEST_CASE("what is wrong is named with its place") {
  const auto refused = [](const std::string& members, const char* where) {
    CAPTURE(members);
    CHECK_THROWS_WITH_AS(
        read_perturbation(R"({"format": "stageline-perturbation 1", )" + members + "}", "p.json"),
        doctest::Contains(where), TraceError);
  };
  refused(R"("jitter": {"law": "log_normal", "variation": -1})", "/jitter/variation");
  refused(R"("jitter": {"law": "log_normal"})", "variation");
  refused(R"("jitter": {"law": "gauss"})", "/jitter/law");
  refused(R"("jitter": {"law": "samples", "samples": []})", "/jitter/samples");
  refused(R"("jitter": {"law": "samples", "samples": [1, -2]})", "/jitter/samples/1");
  refused(R"("slow": [{"name": "gpu2", "factor": 1.2, "probability": 1.1}])",
          "/slow/0/probability");
  refused(R"("pauses": [{"every": 0.5, "time_us": 1}])", "/pauses/0/every");
  refused(R"("pause": [])", "pause");
  CHECK_THROWS_AS(read_perturbation("{}", "p.json"), TraceError);
  CHECK_THROWS_AS(read_perturbation("nothing", "p.json"), TraceError);
}

}  // namespace stageline::perturbation_file_tests
