#include "tools/launch/python_tokens.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <string_view>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

bool begins_name(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}
bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }
bool goes_on(char letter) { return begins_name(letter) || is_digit(letter); }

constexpr std::array<std::string_view, 14> two_signs{
    "->", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "//", "**", ":=", "|=", "&="};

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::vector<PythonLine> lines() {
    while (at_ < text_.size()) step();
    if (depth_ > 0) refuse("a bracket does not end");
    end_line();
    return std::move(lines_);
  }

 private:
  [[noreturn]] void refuse(const char* why) const {
    throw TraceError(file_, fmt::format("line {}", line_),
                     fmt::format("this is not Python: {}", why));
  }
  char here(std::size_t further = 0) const {
    return at_ + further < text_.size() ? text_[at_ + further] : '\0';
  }

  void step() {
    const char letter = here();
    if (letter == '\n') {
      ++line_;
      ++at_;
      if (depth_ == 0) end_line();
      column_ = 0;
    } else if (letter == '\\' && here(1) == '\n') {
      ++line_;
      at_ += 2;
    } else if (letter == ' ' || letter == '\t' || letter == '\r') {
      ++at_;
      ++column_;
    } else if (letter == '#') {
      while (at_ < text_.size() && here() != '\n') ++at_;
    } else {
      take();
    }
  }

  void take() {
    if (now_.tokens.empty()) now_.indent = column_;
    if (here() == '"' || here() == '\'') {
      take_text(false);
    } else if (begins_name(here())) {
      take_name();
    } else if (is_digit(here()) || (here() == '.' && is_digit(here(1)))) {
      take_number();
    } else {
      take_sign();
    }
  }

  void add(PythonTokenKind kind, std::string text, bool formatted = false) {
    now_.tokens.push_back({kind, std::move(text), line_, formatted});
  }

  void take_name() {
    const std::size_t from = at_;
    while (goes_on(here())) ++at_;
    const std::string name = text_.substr(from, at_ - from);
    const bool prefix = name.size() <= 2 && name.find_first_not_of("rRbBfFuU") == std::string::npos;
    if (prefix && (here() == '"' || here() == '\'')) {
      take_text(name.find_first_of("fFbB") != std::string::npos);
    } else {
      add(PythonTokenKind::name, name);
    }
  }

  void take_number() {
    const std::size_t from = at_;
    const auto exponent = [&] {
      const char last = text_[at_ - 1];
      return (here() == '-' || here() == '+') && (last == 'e' || last == 'E') &&
             text_.compare(from, 2, "0x") != 0;
    };
    while (goes_on(here()) || here() == '.' || (at_ > from && exponent())) ++at_;
    std::string digits = text_.substr(from, at_ - from);
    std::erase(digits, '_');
    add(PythonTokenKind::number, digits);
  }

  void take_text(bool formatted) {
    const char quote = here();
    const bool triple = here(1) == quote && here(2) == quote;
    const std::string end(triple ? 3 : 1, quote);
    at_ += end.size();
    std::string inside;
    while (text_.compare(at_, end.size(), end) != 0) {
      if (at_ >= text_.size() || (!triple && here() == '\n')) refuse("a text does not end");
      if (here() == '\n') ++line_;
      if (here() == '\\' && at_ + 1 < text_.size()) inside += text_[at_++];
      inside += text_[at_++];
    }
    at_ += end.size();
    const bool joined = !now_.tokens.empty() && now_.tokens.back().kind == PythonTokenKind::text;
    if (joined) {
      now_.tokens.back().text += inside;
      now_.tokens.back().formatted = now_.tokens.back().formatted || formatted;
    } else {
      add(PythonTokenKind::text, inside, formatted);
    }
  }

  void take_sign() {
    std::string sign(1, here());
    for (const std::string_view two : two_signs) {
      if (text_.compare(at_, two.size(), two) == 0) sign = two;
    }
    at_ += sign.size();
    if (sign == "(" || sign == "[" || sign == "{") ++depth_;
    if (sign == ")" || sign == "]" || sign == "}") --depth_;
    if (depth_ < 0) refuse("a bracket ends that did not begin");
    add(PythonTokenKind::sign, sign);
  }

  void end_line() {
    if (!now_.tokens.empty()) lines_.push_back(std::move(now_));
    now_ = {};
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 0;
  int depth_ = 0;
  PythonLine now_;
  std::vector<PythonLine> lines_;
};

}  // namespace

std::vector<PythonLine> python_lines(const std::string& text, const std::string& file) {
  return Reader(text, file).lines();
}

}  // namespace stageline
