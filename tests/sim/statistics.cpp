// Medians, spreads and drifts of samples.
#include "sim/analysis/statistics.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace stageline::statistics_tests {
namespace {

std::vector<Time> times(const std::vector<int>& values) {
  std::vector<Time> result;
  for (const int value : values) result.emplace_back(value);
  return result;
}

}  // namespace

TEST_CASE("the median is the one in the middle, or the mean of the two") {
  CHECK(median({}) == Time{0});
  CHECK(median(times({5})) == Time{5});
  CHECK(median(times({9, 1, 5})) == Time{5});
  CHECK(median(times({9, 1, 5, 7})) == Time{6});
  CHECK(median(times({1, 1, 1, 1000})) == Time{1});  // one slow sample does not move it
}

TEST_CASE("what is typical of a run counts what disturbs one op in eight, and no single stall") {
  CHECK(typical({}) == Time{0});
  CHECK(typical(times({4, 6})) == Time{5});
  const std::vector<int> disturbed{10, 10, 10, 90, 10, 10, 10, 10};
  std::vector<int> samples;
  for (int group = 0; group < 5; ++group) {
    samples.insert(samples.end(), disturbed.begin(), disturbed.end());
  }
  CHECK(typical(times(samples)) == Time{20});
  samples[2] = 1000000;  // of one group in five
  CHECK(typical(times(samples)) == Time{20});
  CHECK(median(times(samples)) == Time{10});
  // The last group takes what is left over.
  CHECK(typical(times({0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 26})) == Time{5});
}

TEST_CASE("the spread is half the distance between the quartiles, as NumPy has them") {
  // numpy.percentile([0, 10, 20, 30, 40], [25, 75]) is [10, 30]; of [0, 4, 8, 12] it is [3, 9].
  CHECK(half_interquartile(times({40, 0, 30, 10, 20})) == Time{10});
  CHECK(half_interquartile(times({12, 0, 8, 4})) == Time{3});
  CHECK(half_interquartile(times({7, 7, 7})) == Time{0});
  CHECK(half_interquartile({}) == Time{0});
}

TEST_CASE("the drift is what changed from the first half of the samples to the second") {
  CHECK(drift(times({1, 9, 1, 9, 1, 9, 1, 9})) == Time{0});  // noisy, but the same throughout
  CHECK(drift(times({10, 10, 10, 13, 13, 13})) == Time{3});
  CHECK(drift(times({13, 13, 13, 10, 10, 10})) == Time{3});
  CHECK(drift(times({4, 10, 10})) == Time{6});  // of an odd number the second half is longer
  CHECK(drift(times({4})) == Time{0});
  CHECK(drift({}) == Time{0});
}

TEST_CASE("a fraction of nothing is nothing") {
  CHECK(fraction_of(Time{1}, Time{4}) == 0.25);
  CHECK(fraction_of(Time{1}, Time{0}) == 0);
}

}  // namespace stageline::statistics_tests
