// What does a build without protobuf say when it is asked for Chakra traces?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"
#include "traces/programs.hpp"

namespace stageline::no_chakra_tests {
namespace {

TEST_CASE("a build without protobuf says how to get one with it") {
  CHECK(test::complaint<UsageError>([] { write_chakra({}, {}); }) ==
        "this build writes no Chakra traces because protobuf was not found when it was configured; "
        "install libprotobuf-dev and protobuf-compiler and configure with -Dchakra=enabled");
  CHECK(test::complaint<UsageError>([] { read_chakra({}); }) ==
        "this build reads no Chakra traces because protobuf was not found when it was configured; "
        "install libprotobuf-dev and protobuf-compiler and configure with -Dchakra=enabled");
}

}  // namespace
}  // namespace stageline::no_chakra_tests
