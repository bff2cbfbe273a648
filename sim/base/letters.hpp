// Letters of names, without the difference between small and capital ones.
#pragma once

#include <algorithm>
#include <string_view>

namespace stageline {

/// 'a' of 'A'; other characters as they are. Knows ASCII alone, and no locale.
constexpr char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Whether both are the same name, though one may be written "Llama3-8B".
constexpr bool same_name(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return small_letter(a) == small_letter(b); });
}

}  // namespace stageline
