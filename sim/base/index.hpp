// Indexing of containers by signed ids (stage, device, layer).
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace stageline {

/// A count or an enumerator as a std::size_t. `n` >= 0.
template <class Number>
requires std::integral<Number> || std::is_enum_v<Number>
constexpr std::size_t as_size(Number n) {
  if constexpr (std::signed_integral<Number>) assert(n >= 0);
  return static_cast<std::size_t>(n);
}

/// values[i]. 0 <= i < values.size().
template <class Container, class Index>
constexpr decltype(auto) nth(Container&& values, Index i) {
  return std::forward<Container>(values)[as_size(i)];
}

}  // namespace stageline
