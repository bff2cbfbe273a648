// Source: NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py, whose
// list has a list of words a stage, as Megatron-Bridge's recipes give it.
#include "schedulers/partition/layout_list.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_list_items = 1U << 20;
constexpr std::array<std::pair<std::string_view, char>, 4> layer_words{
    {{"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'}}};

class LayoutList {
 public:
  explicit LayoutList(std::string_view text) : text_(text) {}

  // The letters of each stage of the whole text.
  std::vector<std::string> stages() {
    std::vector<std::string> all = sum([this] { return outer(); });
    if (!at_end()) refuse("nothing may follow the list");
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw UsageError(fmt::format("Megatron layout \"{}\", column {}: {}", text_, at_ + 1, message));
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // list * 3 + list
  template <class List>
  auto sum(List list) -> decltype(list()) {
    decltype(list()) all;
    do {
      const auto one = list();
      std::uint32_t times = 1;
      if (take('*')) {
        skip();
        std::string_view rest = text_.substr(at_);
        times = take_number<std::uint32_t>(rest).value_or(0);
        if (times < 1 || times * std::max<std::size_t>(one.size(), 1) > most_list_items) {
          refuse("* is followed by how many times, at least once");
        }
        at_ = text_.size() - rest.size();
      }
      if (all.size() + times * one.size() > most_list_items) refuse("the list is too long");
      for (std::uint32_t i = 0; i < times; ++i) all.insert(all.end(), one.begin(), one.end());
    } while (take('+'));
    return all;
  }

  template <class Item>
  void items(Item item) {
    if (!take('[')) refuse("a list begins with [");
    while (!take(']')) {
      item();
      if (take(',')) continue;
      if (!take(']')) refuse("items of a list are followed by a comma or a ]");
      return;
    }
  }

  std::vector<std::string> outer() {
    std::vector<std::string> stages;
    items([&] { stages.push_back(sum([this] { return inner(); })); });
    return stages;
  }

  std::string inner() {
    std::string letters;
    items([&] { letters += word(); });
    return letters;
  }

  char word() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    const std::size_t end = text_.find(quote, at_ + 1);
    if ((quote != '"' && quote != '\'') || end == std::string_view::npos) {
      refuse("a stage is a list of texts");
    }
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    const auto* const known = std::find_if(layer_words.begin(), layer_words.end(),
                                           [&](const auto& one) { return one.first == name; });
    if (known == layer_words.end()) {
      refuse(
          fmt::format("\"{}\" is not known; a stage has embedding, decoder, mtp and loss", name));
    }
    at_ = end + 1;
    return known->second;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_layout_list(std::string_view text) {
  std::string start;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) start += c;
    if (start.size() == 3) break;
  }
  return start.starts_with("[[") && (start == "[[\"" || start == "[['" || start == "[[]");
}

std::string letters_of_list(std::string_view text) {
  std::string letters;
  bool first = true;
  for (const std::string& stage : LayoutList(text).stages()) {
    if (!first) letters += '|';
    first = false;
    letters += stage;
  }
  return letters;
}

}  // namespace stageline
