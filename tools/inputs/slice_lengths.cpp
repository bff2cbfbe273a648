// Reads the lengths of slices, or balances them by their times.
#include "tools/inputs/slice_lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"

namespace stageline {
namespace {

constexpr int most_rounds = 6;
constexpr double near_enough = 1.01;  // the longest time over the mean

std::vector<std::int64_t> numbers_in(std::string_view text, const std::string& where) {
  constexpr std::string_view between = "-, \t\r\n";
  std::vector<std::int64_t> numbers;
  while (true) {
    const std::size_t first = text.find_first_not_of(between);
    if (first == std::string_view::npos) return numbers;
    text.remove_prefix(first);
    const std::size_t end = std::min(text.find_first_of(between), text.size());
    const std::optional<std::int64_t> number = parse_number<std::int64_t>(text.substr(0, end));
    if (!number || *number < 1) {
      throw UsageError(fmt::format("slices={}: a slice has 1 token or more, not \"{}\"", where,
                                   text.substr(0, end)));
    }
    numbers.push_back(*number);
    text.remove_prefix(end);
  }
}

// Where slices of such lengths end, after the first token.
std::vector<double> ends_of(const std::vector<std::int64_t>& lengths) {
  std::vector<double> ends{0};
  for (const std::int64_t length : lengths) {
    ends.push_back(ends.back() + static_cast<double>(length));
  }
  return ends;
}

// Lengths at which each slice has the same part of all time, if a token takes what the slice that
// it is in says of its tokens; each at least one step.
std::vector<std::int64_t> evened(const std::vector<std::int64_t>& lengths,
                                 const std::vector<double>& times, std::int64_t step) {
  const std::vector<double> ends = ends_of(lengths);
  const double all = std::accumulate(times.begin(), times.end(), 0.0);
  const auto slices = static_cast<std::int64_t>(lengths.size());
  const auto steps = static_cast<std::int64_t>(ends.back()) / step;
  std::vector<std::int64_t> next;
  std::int64_t begin = 0;  // in steps
  std::size_t in = 0;
  double before = 0;  // the time of all slices before `in`
  for (std::int64_t k = 1; k < slices; ++k) {
    const double until = all * static_cast<double>(k) / static_cast<double>(slices);
    while (in + 1 < times.size() && before + times[in] < until) before += times[in++];
    const double share = times[in] > 0 ? std::clamp((until - before) / times[in], 0.0, 1.0) : 0;
    const double at = ends[in] + share * static_cast<double>(lengths[in]);
    const std::int64_t nearest = std::llround(at / static_cast<double>(step));
    const std::int64_t end = std::clamp(nearest, begin + 1, steps - (slices - k));
    next.push_back((end - begin) * step);
    begin = end;
  }
  next.push_back(static_cast<std::int64_t>(ends.back()) - begin * step);
  return next;
}

}  // namespace

std::vector<std::int64_t> given_slices(const std::string& text, const CutSequence& of) {
  const bool is_list = text.find_first_not_of("0123456789-") == std::string::npos;
  std::vector<std::int64_t> lengths = numbers_in(is_list ? text : read_text(text), text);
  if (lengths.size() != as_size(of.slices)) {
    throw UsageError(fmt::format(
        "slices={} gives {} lengths, and sequence_chunks={} cuts into {}; take sequence_chunks={}",
        text, lengths.size(), of.slices, of.slices, std::max<std::size_t>(lengths.size(), 1)));
  }
  for (const std::int64_t length : lengths) {
    if (length % of.ranks == 0) continue;
    throw UsageError(fmt::format(
        "slices={}: {} tokens do not divide among {} ranks; each slice has a multiple of that",
        text, length, of.ranks));
  }
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (sum != of.tokens) {
    throw UsageError(
        fmt::format("slices={} makes up {} tokens, and a sequence has {}", text, sum, of.tokens));
  }
  return lengths;
}

std::vector<std::int64_t> balanced_slices(
    const CutSequence& of, const std::function<double(const SequenceSlice&)>& seconds) {
  const std::int64_t ranks = of.ranks;
  const std::int64_t fine = balanced_step * ranks;
  const bool is_long = of.tokens % fine == 0 && of.tokens / fine >= 2 * std::int64_t{of.slices};
  const std::int64_t step = is_long ? fine : ranks;
  const bool divides = of.tokens % (ranks * of.slices) == 0;
  std::vector<std::int64_t> lengths(as_size(of.slices), of.tokens / of.slices);
  if (!divides) {
    lengths.back() += of.tokens % of.slices;
    lengths = evened(lengths, std::vector<double>(lengths.begin(), lengths.end()), step);
  }
  std::vector<std::int64_t> best = lengths;
  double least = 0;
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<double> times;
    for (int k = 0; k < of.slices; ++k) times.push_back(seconds(slice_of(lengths, k)));
    const double longest = *std::max_element(times.begin(), times.end());
    if (round > 0 && longest >= least) break;
    least = longest;
    best = lengths;
    const double all = std::accumulate(times.begin(), times.end(), 0.0);
    if (longest * of.slices <= near_enough * all) break;
    lengths = evened(lengths, times, step);
    if (lengths == best) break;
  }
  return best;
}

SequenceSlice slice_of(const std::vector<std::int64_t>& lengths, int number) {
  const auto count = static_cast<int>(lengths.size());
  const bool equal = std::all_of(lengths.begin(), lengths.end(),
                                 [&](std::int64_t length) { return length == lengths.front(); });
  if (equal) return {count, number, 0, 0};
  const auto here = lengths.begin() + number;
  return {count, number, std::accumulate(lengths.begin(), here, std::int64_t{0}), *here};
}

}  // namespace stageline
