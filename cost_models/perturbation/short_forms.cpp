// The short forms of perturbations: "5%", "gpu2:1.2@0.1", "100:50ms".
#include <fmt/core.h>

#include <stdexcept>

#include "cost_models/perturbation/perturbation.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

Jitter parse_jitter(const std::string& text, const std::string& what) {
  Jitter jitter;
  const std::vector<std::string> words = words_of(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (i > 0 && word == "transfers") {
      jitter.transfers = true;
      continue;
    }
    if (i == 0 && word == "measured") {
      jitter.law = Jitter::Law::measured;
      continue;
    }
    const bool percent = word.ends_with('%');
    const auto number = parse_number<double>(word.substr(0, word.size() - (percent ? 1 : 0)));
    if (i > 0 || !number || !(*number >= 0) || *number / (percent ? 100 : 1) > most_variation) {
      throw UsageError(fmt::format(
          "{} is a coefficient of variation from 0 to {:.0f}% (5%) or \"measured\", and \",transfers\" "
          "behind it where messages jitter, too; it is \"{}\"",
          what, most_variation * 100, text));
    }
    jitter.variation = percent ? *number / 100 : *number;
    jitter.law = jitter.variation > 0 ? Jitter::Law::log_normal : Jitter::Law::none;
  }
  return jitter;
}

std::optional<Slow> slow_item(std::string_view word) {
  const std::size_t colon = word.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const std::size_t at = std::min(word.find('@', colon), word.size());
  const auto factor = parse_number<double>(word.substr(colon + 1, at - colon - 1));
  const std::optional<double> share =
      at == word.size() ? std::optional(1.0) : parse_number<double>(word.substr(at + 1));
  if (!factor || !share) return std::nullopt;
  return Slow{std::string(word.substr(0, colon)), *factor, *share};
}

std::vector<Slow> parse_slow_items(const std::string& text, const std::string& what) {
  std::vector<Slow> items;
  for (const std::string& word : words_of(text)) {
    const std::optional<Slow> item = slow_item(word);
    if (!item || !(item->factor >= least_slow && item->factor <= most_slow &&
                   item->probability >= 0 && item->probability <= 1)) {
      throw UsageError(fmt::format(
          "{} is NAME:FACTOR or NAME:FACTOR@PROBABILITY, with a factor from {} to {} and a "
          "probability from 0 to 1 (gpu2:1.2@0.1), not \"{}\"",
          what, least_slow, most_slow, word));
    }
    items.push_back(*item);
  }
  return items;
}

std::vector<Pause> parse_pauses(const std::string& text, const std::string& what) {
  std::vector<Pause> pauses;
  for (const std::string& word : words_of(text)) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    const auto every = parse_number<double>(word.substr(0, colon));
    std::optional<Time> time;
    try {
      if (colon < word.size()) time = parse_time(word.substr(colon + 1));
    } catch (const std::invalid_argument&) {  // said below
    }
    if (!every || !(*every >= 1) || !(*every <= 1e9) || !time || *time < Time{}) {
      throw UsageError(fmt::format(
          "{} is STEPS:TIME, a pause of TIME in one of so many steps of each device (100:50ms), with "
          "at least 1 step, not \"{}\"",
          what, word));
    }
    pauses.push_back({*every, *time});
  }
  return pauses;
}

}  // namespace stageline
