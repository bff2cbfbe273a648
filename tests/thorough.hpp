// How long random tests go on: to the end where the code is optimized, and a sample of it where
// asserts and sanitizers make every case ten times as slow.
#pragma once

#include <random>

namespace stageline::test {

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
constexpr bool thorough = true;
#else
constexpr bool thorough = false;
#endif

/// Whether to try this case: each of them in a thorough test, else one in `every`, at random.
inline bool chosen(std::mt19937& random, unsigned every) {
  return thorough || random() % every == 0;
}

}  // namespace stageline::test
