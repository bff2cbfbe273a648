#include "tests/fuzz/mutate.hpp"

#include <algorithm>
#include <cctype>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

// What is compared here is of no use to libFuzzer.
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

namespace stageline::fuzz {
namespace {

struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Mutation {
 public:
  Mutation(std::string text, unsigned seed) : text_(std::move(text)), random_(seed) {}

  std::string json() {
    constexpr std::string_view values[] = {"0",
                                           "-1",
                                           "1",
                                           "2147483648",
                                           "9223372036854775807",
                                           "1e308",
                                           "0.5",
                                           "1e-300",
                                           "null",
                                           "false",
                                           "{}",
                                           "[]",
                                           "\"\"",
                                           "true",
                                           "1e18",
                                           "4294967296",
                                           "[[]]",
                                           "[0,1]",
                                           "3",
                                           "\"\\u0000\"",
                                           "[\"a\",\"b\"]",
                                           "64",
                                           "\"gpu0\"",
                                           "0.000001"};
    for (std::size_t left = 1 + below(4); left > 0; --left) {
      const std::vector<Piece> all = json_values();
      if (all.empty()) break;
      change(all, values[below(std::size(values))], ",");
    }
    return text_;
  }

  std::string text() {
    constexpr std::string_view words[] = {
        "0",   "-1", "2147483647", "9223372036854775807",  "1e308", "1",
        "nan", "#",  ":",          "2147483648",           "=",     "-",
        ",",   "@",  "inf",        "99999999999999999999", "*",     "0.5"};
    for (std::size_t left = 1 + below(4); left > 0; --left) {
      const bool lines = below(3) == 0;
      const std::vector<Piece> all = lines ? this->lines() : this->words();
      if (all.empty()) break;
      change(all, words[below(std::size(words))], lines ? "\n" : " ");
    }
    return text_;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  void change(const std::vector<Piece>& all, std::string_view value, std::string_view between) {
    const Piece one = all[below(all.size())];
    const Piece other = all[below(all.size())];
    const std::string here = text_.substr(one.begin, one.end - one.begin);
    const std::string there = text_.substr(other.begin, other.end - other.begin);
    switch (below(6)) {
      case 0:
        leave_out(one);
        break;
      case 1:
        text_.insert(one.end, std::string(between) + here);
        break;
      case 2:
        replace(one, there);
        break;
      case 3:
        replace(one, std::string(value));
        break;
      case 4:
        text_.insert(one.end, std::string(between) + there);
        break;
      default:
        replace(one, other_number(here));
        break;
    }
  }

  void replace(Piece one, const std::string& with) {
    text_.replace(one.begin, one.end - one.begin, with);
  }

  // With the comma before it.
  void leave_out(Piece one) {
    if (one.begin > 0 && text_[one.begin - 1] == ',') --one.begin;
    replace(one, "");
  }

  std::string other_number(std::string text) {
    std::vector<std::size_t> digits;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (is_digit(text[i])) digits.push_back(i);
    }
    if (digits.empty()) return text;
    const std::size_t at = digits[below(digits.size())];
    switch (below(4)) {
      case 0:
        text[at] = static_cast<char>('0' + below(10));
        break;
      case 1:
        text.insert(at, 1, static_cast<char>('0' + below(10)));
        break;
      case 2:
        text.erase(at, 1);
        break;
      default:
        text.insert(at, below(2) == 0 ? "." : "-");
        break;
    }
    return text;
  }

  // Strings with a ':' behind them, with their value; and values.
  std::vector<Piece> json_values() const {
    std::vector<Piece> all;
    all.reserve(text_.size() / 2);
    std::vector<std::size_t> open;
    std::vector<std::size_t> keys;
    for (std::size_t i = 0; i < text_.size();) {
      const std::size_t begin = i;
      const char c = text_[i];
      if (c == '"') {
        ++i;
        while (i < text_.size() && text_[i] != '"') i += text_[i] == '\\' ? 2 : 1;
        i = std::min(text_.size(), i + 1);
        all.push_back({begin, i});
        if (i < text_.size() && text_[i] == ':') keys.push_back(begin);
      } else if (c == '{' || c == '[') {
        open.push_back(begin);
        ++i;
      } else if ((c == '}' || c == ']') && !open.empty()) {
        ++i;
        all.push_back({open.back(), i});
        open.pop_back();
      } else if (is_word(c) || c == '-') {
        while (i < text_.size() &&
               (is_word(text_[i]) || text_[i] == '.' || text_[i] == '-' || text_[i] == '+')) {
          ++i;
        }
        all.push_back({begin, i});
      } else {
        ++i;
      }
    }
    add_keys(keys, all);
    return all;
  }

  // "key": value as a whole.
  void add_keys(const std::vector<std::size_t>& keys, std::vector<Piece>& all) const {
    std::vector<std::size_t> end_of(text_.size());  // of the value that begins there, or 0
    for (const Piece& value : all) end_of[value.begin] = value.end;
    for (const std::size_t key : keys) {
      const std::size_t colon = text_.find(':', text_.find('"', key + 1));
      if (colon == std::string::npos) continue;
      const std::size_t from = text_.find_first_not_of(" \n\t", colon + 1);
      if (from < end_of.size() && end_of[from] > 0) all.push_back({key, end_of[from]});
    }
  }

  std::vector<Piece> lines() const {
    std::vector<Piece> all;
    for (std::size_t i = 0; i < text_.size();) {
      const std::size_t end = std::min(text_.size(), text_.find('\n', i));
      all.push_back({i, end});
      i = end + 1;
    }
    return all;
  }

  std::vector<Piece> words() const {
    std::vector<Piece> all;
    all.reserve(text_.size());
    for (std::size_t i = 0; i < text_.size();) {
      const std::size_t begin = i;
      const bool digit = is_digit(text_[i]);
      while (i < text_.size() &&
             (digit ? is_digit(text_[i]) : is_word(text_[i]) && !is_digit(text_[i])))
        ++i;
      if (i == begin) ++i;
      all.push_back({begin, i});
    }
    return all;
  }

  std::string text_;
  std::minstd_rand random_;
};

}  // namespace

std::string mutate_json(const std::string& text, unsigned seed) {
  return Mutation(text, seed).json();
}
std::string mutate_text(const std::string& text, unsigned seed) {
  return Mutation(text, seed).text();
}

}  // namespace stageline::fuzz

#pragma clang attribute pop
