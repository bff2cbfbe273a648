// Step times that Megatron-LM's authors published, to which no constant was fitted: are they
// predicted as well as cost_models/README.md says?
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "tools/base/files.hpp"
#include "tools/published/points.hpp"

namespace stageline::megatron_lm_tests {

TEST_CASE("Megatron-LM's step times, with constants that were not fitted to them") {
  const char* const root = std::getenv("STAGELINE_SOURCE");
  REQUIRE(root != nullptr);
  const std::string file = std::string(root) + "/tests/evidence/published/megatron_lm.csv";
  double sum = 0;
  double worst = 0;
  int rows = 0;
  for (const Point& point : read_points(read_file(file), file)) {
    CAPTURE(point.id);
    const Question question = question_of(point);
    REQUIRE(question.why_not.empty());
    const double off = predicted(question).step / measured_step(point).value() - 1;
    sum += std::abs(off);
    worst = std::max(worst, std::abs(off));
    ++rows;
  }
  REQUIRE(rows == 8);
  MESSAGE("mean " << 100 * sum / rows << " %, worst " << 100 * worst << " %");
  CHECK(sum / rows < 0.04);
  CHECK(worst < 0.08);
}

}  // namespace stageline::megatron_lm_tests
