// The bits of a value, as those of another type.
#pragma once

namespace stageline {

/// std::bit_cast, which the library of clang 14 for WebAssembly lacks.
template <class To, class From>
constexpr To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace stageline
