// Which schedule wins, and why: the sentence below each block of a comparison.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/study/outcome.hpp"

namespace stageline {

/// Why a schedule stands where it does.
struct Ranked {
  std::vector<std::size_t> order;  // into the outcomes, best first, those that do not fit last
  std::string sentence;            // the winner among those that fit, and the reason
};
Ranked rank(const std::vector<Outcome>& outcomes, const std::vector<std::size_t>& of);

}  // namespace stageline
