#include "tools/launch/shell_arithmetic.hpp"

#include <cctype>

#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}
  std::optional<std::int64_t> value() {
    const std::int64_t result = sum();
    skip();
    if (failed_ || at_ < text_.size()) return std::nullopt;
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::int64_t checked(std::int64_t a, std::int64_t b, char by) {
    std::int64_t result = 0;
    const bool over = by == '*'   ? __builtin_mul_overflow(a, b, &result)
                      : by == '+' ? __builtin_add_overflow(a, b, &result)
                                  : __builtin_sub_overflow(a, b, &result);
    failed_ = failed_ || over;
    return result;
  }
  std::int64_t divided(std::int64_t a, std::int64_t b) {
    if (b != 0 && b != -1) return a / b;
    failed_ = true;
    return 0;
  }
  std::int64_t sum() {
    std::int64_t result = product();
    while (!failed_) {
      if (take('+')) {
        result = checked(result, product(), '+');
      } else if (take('-')) {
        result = checked(result, product(), '-');
      } else {
        break;
      }
    }
    return result;
  }
  std::int64_t product() {
    std::int64_t result = factor();
    while (!failed_) {
      if (take('*')) {
        result = checked(result, factor(), '*');
      } else if (take('/')) {
        result = divided(result, factor());
      } else {
        break;
      }
    }
    return result;
  }
  std::int64_t factor() {
    if (++depth_ > 100) failed_ = true;
    std::int64_t result = 0;
    if (!failed_ && take('(')) {
      result = sum();
      failed_ = failed_ || !take(')');
    } else {
      skip();
      std::string_view rest = text_.substr(at_);
      const auto number = take_number<std::int64_t>(rest);
      failed_ = failed_ || !number;
      at_ = text_.size() - rest.size();
      result = number.value_or(0);
    }
    --depth_;
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::int64_t> shell_arithmetic(std::string_view text) {
  return Arithmetic(text).value();
}

}  // namespace stageline
