// Is the training that is asked for read as it was meant?
#include "tools/inputs/training_budget.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"
#include "traces/traces.hpp"

namespace stageline::training_budget_tests {
namespace {

TEST_CASE("tokens have a unit, or an exponent") {
  CHECK(parse_tokens("15T", "--tokens") == 15e12);
  CHECK(parse_tokens("300B", "--tokens") == 300e9);
  CHECK(parse_tokens("1.5 T", "--tokens") == 1.5e12);
  CHECK(parse_tokens("1e12", "--tokens") == 1e12);
  CHECK(parse_tokens("250k", "--tokens") == 250e3);
  CHECK(parse_tokens("7M", "--tokens") == 7e6);
  CHECK(parse_tokens("4096", "--tokens") == 4096);
  for (const char* const wrong : {"", "T", "15X", "15TB", "-1B", "0", "1e18T", "nan", "inf"}) {
    CAPTURE(wrong);
    CHECK(test::complaint<UsageError>([&] { (void)parse_tokens(wrong, "--tokens"); }) ==
          "--tokens is a number of tokens above 0 and up to 1e18, such as 15T, 300B or 1.5e12 (not "
          "\"" +
              std::string(wrong) + "\")");
  }
}

TEST_CASE("a price is above 0") {
  CHECK(checked_price(2.5, "--price") == 2.5);
  for (const double wrong : {0.0, -1.0, 2e6}) {
    CHECK_THROWS_AS((void)checked_price(wrong, "--price"), UsageError);
  }
}

TEST_CASE("a budget needs tokens and samples of a micro-batch") {
  Model model = uniform_model("layers=2");
  CHECK_NOTHROW(check_budget({}, model, "--tokens"));
  const auto said = [&] {
    return test::complaint<UsageError>([&] { check_budget({1e12, 2}, model, "--tokens"); });
  };
  CHECK(test::contains(said(), "--tokens: the trace of uniform2 does not say how many tokens"));
  model.tokens = 128;
  CHECK(said().empty());
  model.batch = 0;
  CHECK(test::contains(said(), "does not say how many samples a micro-batch has"));
}

}  // namespace
}  // namespace stageline::training_budget_tests
