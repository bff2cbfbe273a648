// Reads lengths of sequences, or draws them.
#include "tools/inputs/lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/batch/philox.hpp"
#include "tools/base/files.hpp"

namespace stageline {
namespace {

constexpr std::int64_t longest_sequence = std::int64_t{1} << 30;
constexpr std::string_view drawn_form = "lognormal(";
constexpr PhiloxKey key_of_lengths{0x6c656e67, 0x74687321};  // "length!": a draw of their own

[[noreturn]] void refuse(const std::string& why) { throw UsageError("--lengths: " + why); }

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view between = ", \t\r\n";
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = text.find_first_not_of(between);
    if (first == std::string_view::npos) return words;
    text.remove_prefix(first);
    const std::size_t end = std::min(text.find_first_of(between), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::int64_t> read(std::string_view text, const std::string& where) {
  std::vector<std::int64_t> lengths;
  for (const std::string_view word : words_of(text)) {
    const std::optional<std::int64_t> tokens = parse_number<std::int64_t>(word);
    if (!tokens || *tokens < 1 || *tokens > longest_sequence) {
      refuse(fmt::format("number {} of {} is a number of tokens from 1 to {}, not \"{}\"",
                         lengths.size() + 1, where, longest_sequence, word));
    }
    lengths.push_back(*tokens);
  }
  return lengths;
}

// A standard normal number (Box and Muller 1958, doi 10.1214/aoms/1177706645).
double normal(std::uint32_t number) {
  const PhiloxCounter words = philox({number, 0, 0, 0}, key_of_lengths);
  return std::sqrt(-2 * std::log(uniform_of(words[0]))) *
         std::cos(2 * std::numbers::pi * uniform_of(words[1]));
}

std::vector<std::int64_t> draw(std::string_view text, int count, std::int64_t step) {
  const std::string_view inside = text.substr(
      drawn_form.size(), text.size() - drawn_form.size() - (text.ends_with(')') ? 1 : 0));
  const std::vector<std::string_view> words = words_of(inside);
  const auto number = [&](std::size_t i) {
    return words.size() == 2 ? parse_number<double>(words[i]).value_or(-1) : -1;
  };
  const double mean = number(0);
  const double sigma = number(1);
  if (!text.ends_with(')') || !(mean >= 1 && mean <= static_cast<double>(longest_sequence)) ||
      !(sigma >= 0 && sigma <= 4)) {
    refuse(
        fmt::format("lognormal(MEAN,SIGMA) takes a mean number of tokens from 1 to {} and a "
                    "standard deviation of its logarithm from 0 to 4, not \"{}\"",
                    longest_sequence, text));
  }
  std::vector<std::int64_t> lengths;
  for (int n = 0; n < count; ++n) {
    const double of_mean =
        std::exp(sigma * normal(static_cast<std::uint32_t>(n)) - sigma * sigma / 2);
    const double steps = std::ceil(mean * of_mean / static_cast<double>(step));
    const std::int64_t most = longest_sequence / step;
    lengths.push_back(static_cast<std::int64_t>(std::clamp(steps, 1.0, static_cast<double>(most))) *
                      step);
  }
  return lengths;
}

}  // namespace

std::int64_t length_step(const Sharding& sharding) {
  return std::int64_t{2} * sharding.tensor * sharding.context;
}

std::vector<std::int64_t> lengths_of(const std::string& text, int microbatches, std::int64_t step) {
  if (text.starts_with(drawn_form)) return draw(text, microbatches, step);
  const bool is_list = text.find_first_not_of("0123456789, ") == std::string::npos;
  const std::string where = is_list ? "the list" : text;
  const std::vector<std::int64_t> lengths = read(is_list ? text : read_text(text), where);
  if (lengths.size() != static_cast<std::size_t>(microbatches)) {
    refuse(
        fmt::format("{} has {} lengths, and a step has {} micro-batches; give one for each, or "
                    "--microbatches {}",
                    where, lengths.size(), microbatches, std::max<std::size_t>(lengths.size(), 1)));
  }
  return lengths;
}

}  // namespace stageline
