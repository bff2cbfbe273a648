// Bytes at each moment between two layers of a stage.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline {

__extension__ using Wide = __int128;  // no sum of a model's bytes leaves it

// A value for each moment between two layers of a stage: [0] before the first, [n] behind the last.
class Moments {
 public:
  explicit Moments(std::size_t layers) : change_(layers + 2) {}
  // From `first` to `last`, both included; nothing where they are in the wrong order.
  void add(int first, int last, Wide bytes) {
    if (first > last) return;
    nth(change_, first) += bytes;
    nth(change_, last + 1) -= bytes;
  }
  std::vector<Wide> values() const {
    std::vector<Wide> sums;
    Wide sum = 0;
    for (std::size_t i = 0; i + 1 < change_.size(); ++i) sums.push_back(sum += change_[i]);
    return sums;
  }

 private:
  std::vector<Wide> change_;
};

}  // namespace stageline
