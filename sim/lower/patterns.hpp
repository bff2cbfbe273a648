// What the ops of one kind, stage and part need and make: the same products for every number, so
// lowering asks the rules once per pattern and adds the number from then on.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/lower/standstill.hpp"
#include "sim/rules.hpp"
#include "sim/units.hpp"

namespace stageline {

/// The indices of a product series as seen by an op: number n has the index first + n * step,
/// modulo 2^32 (the first index of a product that is made before micro-batch 0 is negative).
struct IndexLine {
  std::uint32_t first = 0;
  std::uint32_t step = 0;
  std::uint32_t at(std::uint32_t number) const { return first + number * step; }
};

/// One cache line. Ops with from <= number < limit follow the pattern.
struct alignas(64) OpPattern {
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint8_t most_needs = 3;
  static constexpr std::uint8_t most_makes = 2;

  IndexLine need[most_needs];
  IndexLine make[most_makes];  // padded with lines to the spare index, ProductIndex::size()
  Time duration{};
  std::uint32_t from = never;
  std::uint32_t limit = 0;  // all numbers below have an index for everything they make
  /// Of U and REDUCE_GRAD, if not 0: op n needs the numbers from n * span to (n + 1) * span of
  /// need[0], and nothing else.
  std::uint32_t span = 0;
  std::uint16_t path = 0;
  std::uint8_t needs = 0;
  bool makes_known = false;
  bool needs_known = false;
  bool charged = false;  // duration and path are those of all ops of the pattern

  bool covers(std::uint32_t number) const { return from <= number && number < limit; }
};

/// The patterns of a program, filled in as its ops are first seen.
class OpPatterns {
 public:
  /// `slots` by product index; `nobody` where no op makes the product.
  OpPatterns(const Program& program, const StageGraph& stages, const ProductIndex& index,
             const std::vector<Slot>& slots);

  /// The op's pattern, with what the op makes. Ops without a pattern share one that covers nothing.
  OpPattern& of(Op op) {
    if (op.part >= parts_) return none_;
    const std::size_t row = op.stage * kinds_ + rank_[static_cast<std::size_t>(op.kind)];
    OpPattern& pattern = patterns_[row * parts_ + op.part];
    if (!pattern.makes_known) find_makes(pattern, op);
    return pattern;
  }

  /// Whether it is the pattern of its ops alone, not the one that covers nothing.
  bool owns(const OpPattern& pattern) const { return &pattern != &none_; }

  /// Finds what the pattern's ops need. It stays uncovered where that depends on the number.
  void find_needs(OpPattern& pattern, Op op);

  /// Calls made(index) for everything that the op makes and that has an index; and, any number of
  /// times, for the spare index.
  template <class Made>
  void for_made(const OpPattern& pattern, Op op, Made&& made) const {
    if (op.microbatch < pattern.limit) {
      for (const IndexLine line : pattern.make) made(std::size_t{line.at(op.microbatch)});
      return;
    }
    makes(stages_, op, [&](Product product, int at, std::uint32_t number, int part) {
      const std::int64_t place = index_.index(product, at, number, part);
      if (place >= 0) made(static_cast<std::size_t>(place));
    });
  }

 private:
  enum class Extent : std::uint8_t { unknown, none, some, all };

  void find_makes(OpPattern& pattern, Op op) const;
  void find_span(OpPattern& pattern, Op op);
  std::uint32_t regular_from(Op op) const;
  Extent extent_of(const ProductSeries& series);

  const Program& program_;
  const StageGraph& stages_;
  const ProductIndex& index_;
  const std::vector<Slot>& slots_;
  std::array<std::uint8_t, op_kinds> rank_{};  // of the kinds that the program has
  std::size_t kinds_ = 0;
  std::size_t parts_ = 1;
  std::vector<OpPattern> patterns_;  // stages × kinds × parts
  OpPattern none_;
  std::vector<Extent> extent_;  // by product series: the part of it that is made
};

}  // namespace stageline
