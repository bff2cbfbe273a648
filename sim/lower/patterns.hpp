// What the ops of one kind, stage and part need and make: the same products for every number, so
// lowering asks the rules once per pattern and adds the number from then on.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/lower/standstill.hpp"
#include "sim/rules.hpp"

namespace stageline {

/// One cache line. Ops with from <= number < limit follow the pattern.
struct alignas(64) OpPattern {
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint16_t no_lane = 0xffff;
  static constexpr std::uint16_t several = 0xfffe;  // lanes
  static constexpr std::uint32_t most_needs = 3;
  static constexpr std::uint32_t most_makes = 2;  // padded with the spare index

  std::uint32_t need_index(std::uint32_t i, std::uint32_t number) const {
    return need_first[i] + number * need_step[i];
  }
  std::uint32_t make_index(std::uint32_t i, std::uint32_t number) const {
    return make_first[i] + number * make_step[i];
  }
  bool covers(std::uint32_t number) const { return from <= number && number < limit; }

  std::uint32_t need_first[most_needs] = {};
  std::uint32_t make_first[most_makes] = {};
  Time duration{};
  std::uint32_t from = never;
  std::uint32_t limit = 0;  // all numbers below have an index for everything they make
  /// If not 0, op n (a U or a REDUCE_GRAD) needs the numbers from n * span to (n + 1) * span of its
  /// first need, and nothing else.
  std::uint32_t span = 0;
  std::uint16_t path = 0;
  std::uint16_t lane = no_lane;
  std::uint8_t need_step[most_needs] = {};
  std::uint8_t make_step[most_makes] = {};
  std::uint8_t needs = 0;
  std::uint8_t in_lane = 0;  // a bit per need: it is made in the lane of the op
  bool makes_known : 1 = false;
  bool needs_known : 1 = false;
  bool charged : 1 = false;  // duration and path are those of all ops of the pattern
};
static_assert(sizeof(OpPattern) == 64);

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
      for (std::uint32_t i = 0; i < OpPattern::most_makes; ++i) {
        made(std::size_t{pattern.make_index(i, op.microbatch)});
      }
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
  bool made_in_lane(std::uint16_t lane, Product product, int stage, int part);
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
