// Are numbers of devices, and sweeps of them, read as they are typed?
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/inputs/setting.hpp"

namespace stageline::device_counts_tests {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_devices(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a sweep of devices is a list of numbers and ranges, upwards") {
  CHECK(parse_devices("8") == std::vector<int>{8});
  CHECK(parse_devices("2..4") == std::vector<int>{2, 3, 4});
  CHECK(parse_devices("2,4,8") == std::vector<int>{2, 4, 8});
  CHECK(parse_devices("1,3..5,8") == std::vector<int>{1, 3, 4, 5, 8});
  CHECK(refusal("4..2") == "--devices 4..2: a sweep goes upwards; write 2..4");
  CHECK(refusal("4,2") == "--devices 4,2: a sweep goes upwards, and 2 follows 4");
  CHECK(refusal("2..4,4") == "--devices 2..4,4: a sweep goes upwards, and 4 follows 4");
  CHECK(refusal("2,") == "--devices must be a whole number from 1 to 65536 (it is \"\")");
  CHECK(refusal("") == "--devices must be a whole number from 1 to 65536 (it is \"\")");
  CHECK(refusal("2,x") == "--devices must be a whole number from 1 to 65536 (it is \"x\")");
}

}  // namespace stageline::device_counts_tests
