// Does a long run take as long as the formula of its useful share says?
#include "tools/compare/long_run.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/errors.hpp"

namespace stageline::long_run_tests {
namespace {

LongRunRequest request_of(const Failures& failures, double work) {
  LongRunRequest request;
  request.failures = failures;
  request.work = work;
  request.scenarios = 2000;
  return request;
}

TEST_CASE("the mean of long runs is that of the formula") {
  for (const Failures& failures :
       {Failures{8 * 3600, 60, 0, 1800}, Failures{3600, 120, 300, 600}, Failures{600, 30, 60, 0}}) {
    // So many intervals that the missing last checkpoint counts for little.
    const UsefulShare share = useful_share(failures);
    const auto run = long_run(request_of(failures, 2000 * share.interval));
    REQUIRE(run);
    CHECK(run->useful == doctest::Approx(share.useful).epsilon(0.003));
    CHECK(run->failures * failures.between == doctest::Approx(run->mean).epsilon(0.01));
    CHECK(run->p5 < run->p50);
    CHECK(run->p50 < run->p95);
    CHECK(run->p95 < run->p99);
  }
}

TEST_CASE("without failures a run takes its work and its checkpoints") {
  const auto run = long_run(request_of({1e15, 60, 100, 600}, 6000));
  REQUIRE(run);
  CHECK(run->mean == doctest::Approx(6000 + 9 * 60).epsilon(1e-12));
  CHECK(run->p99 == doctest::Approx(run->p5).epsilon(1e-12));
}

TEST_CASE("one interval: the closed form of its time, and of the chance that nothing fails") {
  // E = M e^(R/M) (e^(I/M) − 1): one interval that ends without a checkpoint.
  const Failures failures{1000, 50, 200, 800};
  LongRunRequest request = request_of(failures, 800);
  request.scenarios = 40'000;
  const auto run = long_run(request);
  REQUIRE(run);
  const double expected = 1000 * std::exp(0.2) * std::expm1(0.8);
  CHECK(run->mean == doctest::Approx(expected).epsilon(0.02));
  // Nothing fails in e^-0.8 = 45 % of them, which are the shortest.
  CHECK(run->p5 == 800);
}

TEST_CASE("a run shorter than an interval between checkpoints counts the failures it meets") {
  LongRunRequest request = request_of({8 * 3600, 60, 0, 400 * 3600}, 2 * 3600);
  request.scenarios = 4000;
  const auto run = long_run(request);
  REQUIRE(run);
  CHECK(run->failures == doctest::Approx(std::expm1(0.25)).epsilon(0.05));
  // A hundred intervals' length in one is not played.
  CHECK_THROWS_WITH_AS(long_run(request_of({3600, 60, 0, 1e9}, 100 * 3600)),
                       doctest::Contains("more than can be played"), UsageError);
}

TEST_CASE("long runs are the same with any number of threads, and end when they are told to") {
  LongRunRequest request = request_of({3600, 60, 30, 0}, 1e6);
  request.scenarios = 300;
  std::vector<double> means;
  for (const int threads : {1, 2, 7}) {
    request.threads = threads;
    means.push_back(long_run(request)->mean);
  }
  CHECK(means[0] == means[1]);
  CHECK(means[0] == means[2]);
  const std::atomic<bool> stop{true};
  request.stop = &stop;
  CHECK_FALSE(long_run(request));
  request.stop = nullptr;
  request.work = 1e15;
  CHECK_THROWS_WITH_AS(long_run(request), doctest::Contains("more than can be played"), UsageError);
}

}  // namespace
}  // namespace stageline::long_run_tests
