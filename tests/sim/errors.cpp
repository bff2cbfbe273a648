// Are suggestions near, and do errors carry their data?
#include "sim/errors.hpp"

#include <doctest/doctest.h>

#include "tests/text.hpp"

namespace stageline {
namespace {

TEST_CASE("the nearest known name is suggested, the first of equals") {
  const std::vector<std::string> known = {"naive", "gpipe", "1f1b", "pipedream"};
  CHECK(test::contains(did_you_mean("gpip", known), "\"gpipe\""));
  CHECK(test::contains(did_you_mean("pipedreem", known), "\"pipedream\""));
  CHECK(test::contains(did_you_mean("f1b", known), "\"1f1b\""));
  CHECK(test::contains(did_you_mean("ab", {"ax", "ay"}), "\"ax\""));
}

TEST_CASE("what is far from everything gets no suggestion") {
  CHECK(did_you_mean("interleaved", {"naive", "gpipe"}) == "");
  CHECK(did_you_mean("gpipe", {}) == "");
}

TEST_CASE("a trace error names its file and place") {
  const TraceError error("vgg.json", "/layers/3/forward", "a time must not be negative");
  CHECK(std::string(error.what()) == "vgg.json at /layers/3/forward: a time must not be negative");
  CHECK(error.file == "vgg.json");
  CHECK(error.where == "/layers/3/forward");
  CHECK(std::string(TraceError("vgg.json", "", "is empty").what()) == "vgg.json: is empty");
}

}  // namespace
}  // namespace stageline
