// Finds words and numbers that cannot be in answers.
#include "tests/questions/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

namespace stageline::test {

using Json = nlohmann::json;

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string nonsense(const std::string& text, bool differences) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && is_word(text[at - 1])) continue;
    for (const char* const word : {"nan", "inf", "NaN", "Infinity"}) {
      const std::size_t length = std::string_view(word).size();
      if (text.compare(at, length, word) != 0) continue;
      if (at + length < text.size() && is_word(text[at + length])) continue;
      return text.substr(at > 20 ? at - 20 : 0, 60);
    }
    const bool starts = at == 0 || text[at - 1] == ' ' || text[at - 1] == '(';
    const bool negative = text[at] == '-' && at + 1 < text.size() &&
                          std::isdigit(static_cast<unsigned char>(text[at + 1])) != 0;
    if (!differences && starts && negative) return text.substr(at > 20 ? at - 20 : 0, 60);
    if (text.compare(at, 6, "-0.0 %") == 0) return text.substr(at > 20 ? at - 20 : 0, 60);
  }
  return "";
}

std::string wrong_number(const Json& value, const std::string& where) {
  static const std::vector<std::string> may_be_null{
      "memory_bytes",
      "share",
      "microbatch_size",
      "microbatch_sizes",
      "microbatch_in_round",
      "first_difference",
      "position",
      "check",
      "first",
      "second",
      "split_over_fused",
      "throughput",
      "speedup",
      "step_exact",
      "delay_updates",
      "driver",  // of a device whose reserve is unknown
      "peak_op",
      "given_step_time_ps",
      "nearest",
      "cost",
      "window",
      "missing_bytes",  // of memory that grows
      "where"};
  static const std::vector<std::string> may_be_negative{"memory_increase_fraction", "difference",
                                                        "forward_difference", "backward_difference",
                                                        "update_difference"};
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      const bool missing =
          inner.is_null() || (inner.is_array() && !inner.empty() && inner.front().is_null());
      const std::vector<std::string>& allowed = missing ? may_be_null : may_be_negative;
      if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
      if (std::string found = wrong_number(inner, where + "/" + key); !found.empty()) return found;
    }
    return "";
  }
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      std::string found = wrong_number(value[i], fmt::format("{}/{}", where, i));
      if (!found.empty()) return found;
    }
    return "";
  }
  if (value.is_null()) return where + " is null";
  if (value.is_number() && value.get<double>() < 0) return where + " is " + value.dump();
  return "";
}

}  // namespace stageline::test
