// Converts spans in time to boxes on paper, with a bound on their number.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline::report {

/// Maps the window [start, end] to [left, left + width] px.
struct TimeScale {
  Time end{};
  double left = 0;
  double width = 0;
  Time start{};

  /// Rounded to hundredths, so that neighbours share an edge.
  double x(Time time) const;
  /// Not rounded, for many pieces within one hundredth of a pixel.
  double exact(Time time) const;
  /// The nearest moment of the window.
  Time nearest(Time time) const;
};

/// An interval [start, end) in one colour.
struct Piece {
  Time start{};
  Time end{};
  int tone = 0;
};

/// A box in a row. `top` and `height` are shares of the row's height, from its upper edge.
struct Box {
  double x = 0;      // px
  double width = 0;  // px
  double top = 0;
  double height = 1;
  int tone = 0;
  std::ptrdiff_t piece = -1;  // index of its piece; -1: several, merged
};

struct Boxes {
  std::vector<Box> boxes;
  std::size_t merged = 0;  // pieces without a box of their own
};

/// Boxes of one lane; `pieces` in order of start. Pieces with the same start and end share the
/// row's height. Neighbours narrower than `narrow` px become cells of at least that width, in which
/// the boxes are stacked, each as high as its tone's share of the cell's time. Empty pieces have no
/// box.
Boxes boxes_of(const std::vector<Piece>& pieces, const TimeScale& scale, double narrow, int steps);

}  // namespace stageline::report
