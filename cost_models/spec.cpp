#include "cost_models/spec.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

template <typename Number>
Number number(std::string_view key, std::string_view text, std::string_view rule) {
  const auto value = parse_number<Number>(text);
  if (!value) throw UsageError(fmt::format("{} must be {}, not '{}'", key, rule, text));
  return *value;
}

}  // namespace

Spec parse_spec(std::string_view text) {
  std::string_view rest = text;
  const auto next_word = [&rest] {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    return word;
  };
  Spec spec;
  spec.head = next_word();
  while (!rest.empty()) {
    const std::string_view word = next_word();
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      throw UsageError(
          fmt::format("'{}' in '{}' is not an option, which reads key=value", word, text));
    }
    const std::string key(word.substr(0, equals));
    for (const auto& [seen, value] : spec.options) {
      if (seen == key)
        throw UsageError(fmt::format("option '{}' appears twice in '{}'", key, text));
    }
    spec.options.emplace_back(key, word.substr(equals + 1));
  }
  return spec;
}

std::int64_t whole_number(std::string_view key, std::string_view text, std::int64_t most,
                          std::int64_t least) {
  const bool limited = most < std::numeric_limits<std::int64_t>::max();
  const std::string rule =
      fmt::format("a whole number from {}{}", least, limited ? fmt::format(" to {}", most) : "");
  const auto value = number<std::int64_t>(key, text, rule);
  if (value < least || value > most) {
    throw UsageError(fmt::format("{} must be {}, not {}", key, rule, text));
  }
  return value;
}

double real_number(std::string_view key, std::string_view text, std::string_view rule) {
  return number<double>(key, text, rule);
}

bool yes_or_no(std::string_view key, std::string_view text) {
  if (text != "yes" && text != "no") {
    throw UsageError(fmt::format("{} must be yes or no, not '{}'", key, text));
  }
  return text == "yes";
}

int parallel_degree(std::string_view key, std::string_view text) {
  return static_cast<int>(whole_number(key, text, 1 << 16));
}

}  // namespace stageline
