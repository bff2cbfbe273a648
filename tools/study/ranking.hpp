// Which schedule wins, and why: the sentence below each block of a comparison.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tools/study/outcome.hpp"

namespace stageline {

/// An order of outcomes, and the reason for its first.
struct Ranked {
  std::vector<std::size_t> order;  // into the outcomes, best first, those that do not fit last
  std::string sentence;            // the winner among those that fit, and the reason
};
Ranked rank(std::span<const Outcome* const> outcomes);

}  // namespace stageline
