// Sorts a lane that several senders fill, each of them in order.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/timeline.hpp"

namespace stageline {

/// Splits the spans into ascending piles (patience sorting) and merges them: k senders need at most
/// k piles. O(spans × piles); with more than `most_piles` of them it falls back to std::sort. The
/// buffers are kept from lane to lane.
class PileSorter {
 public:
  static constexpr std::size_t most_piles = 8;  // besides the one that stays in place

  /// By start, then by op.
  void sort(Spans& spans);

 private:
  bool sort_from(Spans& spans, std::size_t sorted);
  bool put_on_a_pile(const Span& span);

  std::array<std::vector<Span>, most_piles> piles_;
};

}  // namespace stageline
