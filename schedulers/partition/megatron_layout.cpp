// Reads the text of a layout of Megatron: letters of layers, bars between stages, repetitions.
#include "schedulers/partition/megatron_layout.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "schedulers/partition/layout_list.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_letters = 1U << 20;

class Expansion {
 public:
  explicit Expansion(std::string_view text) : text_(text) {}

  // Letters and bars, repetitions written out.
  std::string letters() {
    std::string all;
    while (at_ < text_.size()) all += item(/*in_group=*/false);
    return all;
  }

  [[noreturn]] void refuse(std::size_t at, const std::string& message) const {
    throw UsageError(fmt::format("Megatron layout \"{}\", column {}: {}", text_, at + 1, message));
  }

 private:
  std::string item(bool in_group) {
    const std::size_t begin = at_;
    const char c = text_[at_++];
    if (c == ',') return "";
    std::string unit(1, c);
    if (c == '(') {
      if (in_group) refuse(begin, "a group inside a group is not known there");
      unit.clear();
      while (at_ < text_.size() && text_[at_] != ')') unit += item(/*in_group=*/true);
      if (at_ == text_.size()) refuse(begin, "the group is not closed by a )");
      ++at_;
      if (unit.empty()) refuse(begin, "the group is empty");
      if (at_ == text_.size() || text_[at_] != '*') {
        refuse(begin, "a group is followed by *n, the number of times it is repeated");
      }
    } else if (std::string_view("EtmL|").find(c) == std::string_view::npos) {
      refuse(begin, fmt::format("\"{}\" is not known; E is the embedding, t a decoder layer, m a "
                                "multi-token prediction layer, L the loss, | ends a stage",
                                c));
    }
    if (at_ == text_.size() || text_[at_] != '*') return unit;
    ++at_;
    std::string_view rest = text_.substr(at_);
    const std::uint32_t times = take_number<std::uint32_t>(rest).value_or(0);
    if (times < 1 || times * unit.size() > most_letters) {
      refuse(at_, fmt::format("* is followed by how many times, from 1 to {}",
                              most_letters / unit.size()));
    }
    at_ = text_.size() - rest.size();
    std::string repeated;
    for (std::uint32_t i = 0; i < times; ++i) repeated += unit;
    if ((expanded_ += repeated.size()) > most_letters) {
      refuse(begin, fmt::format("the layout has more than {} letters", most_letters));
    }
    return repeated;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t expanded_ = 0;
};

}  // namespace

std::string trimmed_layout(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

bool looks_like_megatron(std::string_view text) {
  const std::string layout = trimmed_layout(text);
  if (is_layout_list(layout)) return true;
  const bool letters = layout.find_first_not_of("EtmL|,()*0123456789") == std::string::npos;
  // A cut as it is printed, "0-5 | 6-11".
  if (layout.find_first_not_of("0123456789-| ") == std::string::npos) return false;
  return layout.find('|') != std::string::npos || (letters && layout.compare(0, 1, "E") == 0);
}

std::vector<std::string> parse_megatron(std::string_view text) {
  const std::string layout = trimmed_layout(text);
  Expansion expansion(layout);
  const std::string letters =
      is_layout_list(layout) ? letters_of_list(layout) : expansion.letters();
  const auto refuse = [&](const std::string& message) {
    throw UsageError(fmt::format("Megatron layout \"{}\": {}", layout, message));
  };
  std::vector<std::string> stages{""};
  for (const char c : letters) {
    if (c == '|') {
      stages.emplace_back();
    } else {
      stages.back() += c;
    }
  }
  constexpr std::string_view order = "EtmL";
  char before = 'E';
  for (const char c : letters) {
    if (c == '|') continue;
    if (order.find(c) < order.find(before)) {
      refuse(fmt::format("{} comes after {}; the order is E, t, m, L", c, before));
    }
    before = c;
  }
  for (const char once : {'E', 'L'}) {
    const auto count = std::count(letters.begin(), letters.end(), once);
    if (count == 1) continue;
    refuse(fmt::format("there must be one {} ({}), and there are {}", once,
                       once == 'E' ? "the embedding" : "the loss", count));
  }
  for (const std::size_t s : {std::size_t{0}, stages.size() - 1}) {
    if (!stages[s].empty()) continue;
    refuse(
        fmt::format("stage {} of {} has no layer, but only one between others, which passes on "
                    "what it gets, may have none: {}; leave out a |",
                    s, stages.size(), s == 0 ? "E is in the first" : "L is in the last"));
  }
  return stages;
}

}  // namespace stageline
