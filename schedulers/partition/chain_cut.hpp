// Cutting a chain of work into contiguous pieces, the largest as small as can be: LayerPipe's
// processors, and PipeFB's F-nodes and B-nodes. Pure, and exact to the picosecond.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/op.hpp"

namespace stageline {

/// One link of the chain: the F, I or W of a layer. `kind` is for the caller; the cut reads the
/// time, whether it is divisible, and which items belong to one layer.
struct ChainItem {
  Time time{};
  bool divisible = false;
  int layer = 0;
  OpKind kind = OpKind::forward;
};

/// What a divisible item allows, at most once each: nothing; two halves (of an odd number of
/// picoseconds the first is the smaller); any two parts.
enum class Division : std::uint8_t { never, half, anywhere };

/// What a piece has of an item.
struct ChainShare {
  int piece = 0;
  Time time{};  // on a device of rate 1

  friend bool operator==(const ChainShare&, const ChainShare&) = default;
};

struct ChainCut {
  Time largest{};  // the least possible: of every piece its work / its rate
  /// By item: one share, or of a divided item two, in the order of the pieces.
  std::vector<std::vector<ChainShare>> shares;
};

/// Cuts the chain into `pieces` contiguous pieces, in the order of the items, so that the slowest
/// takes the least time. Piece p takes its work / rates[p], rounded to whole picoseconds
/// (on_device); no rates: all 1. The optimal cut taken divides no item and cuts inside no layer
/// where moving a single boundary avoids it, and is near to even otherwise.
///
/// Pieces may be empty: where there are fewer items than pieces, or where a piece is too slow for
/// what it could get. A divided item's parts may have such a piece between them.
///
/// Throws UsageError unless there is at least 1 piece and, if any, one positive rate a piece.
ChainCut chain_cut(const std::vector<ChainItem>& items, int pieces, Division division,
                   const std::vector<double>& rates = {});

/// Times of one layer on one piece that go on side by side, such as compute, its copies over a host
/// link, its weights over another. Those that do not apply are 0.
using SideBySide = std::array<Time, 3>;

/// The best contiguous cuts of the layers' forwards over some devices and of their backwards over
/// others.
struct SplitCut {
  Time largest{};                  // over the pieces of both sides
  std::vector<int> forward_last;   // by piece but the last: its last layer (partition_from_cuts)
  std::vector<int> backward_last;  // the same of the backward pieces
};

/// Each side cut so that its slowest piece takes the least time; a piece takes the largest of the
/// sums of its layers' components. Every piece has a layer. Throws UsageError when a side has no
/// piece or more pieces than layers, or the sides differ in layers.
SplitCut split_cut(const std::vector<SideBySide>& forward, const std::vector<SideBySide>& backward,
                   int forward_pieces, int backward_pieces);

/// The same with the best split of `pieces` pieces; of equally good ones that with the fewest for
/// the forwards.
SplitCut split_cut(const std::vector<SideBySide>& forward, const std::vector<SideBySide>& backward,
                   int pieces);

}  // namespace stageline
