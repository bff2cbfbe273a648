// Are suggestions near, and do errors carry their data?
#include "sim/base/errors.hpp"

#include <doctest/doctest.h>

#include "sim/base/nearest.hpp"
#include "sim/deadlock.hpp"
#include "sim/program.hpp"
#include "tests/text.hpp"

namespace stageline::errors_tests {
namespace {

TEST_CASE("the nearest known name is suggested, the first of equals") {
  const std::vector<std::string> known = {"naive", "gpipe", "1f1b", "pipedream"};
  CHECK(test::contains(did_you_mean("gpip", known), "\"gpipe\""));
  CHECK(test::contains(did_you_mean("pipedreem", known), "\"pipedream\""));
  CHECK(test::contains(did_you_mean("f1b", known), "\"1f1b\""));
  CHECK(test::contains(did_you_mean("abc", {"axc", "ayc"}), "\"axc\""));
}

TEST_CASE("what begins so is meant before what is near, and an exchange is one edit") {
  CHECK(nearest("mem", {"ep", "messages", "memory"}) == "memory");
  CHECK(nearest("resnet-50", {"resnet20-cpu", "resnet50-cpu", "resnet50-h100"}) == "resnet50-cpu");
  CHECK(nearest("me", {"messages", "memory"}).empty());
  CHECK(nearest("me", {"devices", "memory"}) == "memory");
  CHECK(nearest("fiar", {"fifo", "fair"}) == "fair");
  CHECK(nearest("weigths", {"windows", "weights"}) == "weights");
  CHECK(nearest("Micro-Batches", {"microbatch-size", "microbatches"}) == "microbatches");
}

TEST_CASE("a third of the letters is a typo, more is another name; a number is none") {
  CHECK(nearest("gpus", {"tp", "pp", "dp"}).empty());
  CHECK(nearest("verbose", {"zero", "reserve"}).empty());
  CHECK(nearest("help", {"sweep"}).empty());
  CHECK(nearest("half", {"none", "all"}).empty());
  CHECK(nearest("naif", {"naive", "list"}) == "naive");  // begins with the same letter
  CHECK(nearest("4", {"0", "1", "40"}).empty());
  CHECK(nearest("--", {"zero"}).empty());
  CHECK(nearest(std::string(1 << 20, 'a'), {"zero"}).empty());
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

TEST_CASE("a name with a NUL does not cut a message short") {
  using namespace std::string_literals;
  CHECK(without_nul("stage\0s\0"s) == "stage\u2400s\u2400");
  const auto said = [](const auto& error) { return std::string(error.what()); };
  CHECK(said(TraceError("t", "/name", "(it is \"\0\")"s)) == "t at /name: (it is \"\u2400\")");
  CHECK(said(ProgramError("\0, op 1"s)) == "\u2400, op 1");
  CHECK(said(Deadlock("\0 waits"s, {}, {})) == "\u2400 waits");
  CHECK(said(UsageError("no \0 here"s)) == "no \u2400 here");
}

TEST_CASE("a program whose device is called NUL is refused with a message") {
  using namespace std::string_literals;
  const std::string text =
      "stageline-program 1\nmicrobatches: 1\nsteps: 1\nstage 0: \0\n\0: 0F0 1F0 0B0 0U0\n"s;
  CHECK(test::contains(test::complaint<ProgramError>([&] { validate(parse_program(text)); }),
                       "\u2400, op 1 (1F0): "));
}

}  // namespace
}  // namespace stageline::errors_tests
