// A ranking of outcomes that a test holds as values.
#pragma once

#include <vector>

#include "tools/study/figures/ranking.hpp"

namespace stageline::test {

inline Ranked ranked(const std::vector<Outcome>& outcomes) {
  std::vector<const Outcome*> pointers;
  for (const Outcome& outcome : outcomes) pointers.push_back(&outcome);
  return rank(pointers);
}

}  // namespace stageline::test
