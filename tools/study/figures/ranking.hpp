// Which schedule to take, and why: the sentence below each block of a comparison.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/study/outcome.hpp"

namespace stageline {

/// Memory at the place, a device or host of known size, that has least room left, or lacks most.
struct MemoryNeed {
  Bytes peak{};
  Bytes limit{};
  std::string place;
  bool grows = false;  // as long as it runs: no size is enough, and the rest says nothing

  /// Negative: room left. More than any peak where it grows.
  Bytes missing() const;
};

/// Empty where no size is known, of bytes or of memories; never where it grows.
std::optional<MemoryNeed> tightest(const Outcome& outcome);

/// "24.00 MB of 20.00 MB on gpu0"; "more memory the longer it runs"
std::string print(const MemoryNeed& need);

/// "4.000 MB are missing on gpu0"; "memory grows as long as it runs"
std::string print_missing(const MemoryNeed& need);

/// Times that differ by less than this share are called the same.
inline constexpr double same_time = 0.0005;

/// By how much an outcome may be slower than the fastest and still be recommended for its memory.
inline constexpr double default_within = 0.01;

/// An outcome that is taken of those that tie with the fastest: their steps differ by less than can
/// be told.
struct Tie {
  std::size_t taken = 0;  // into the outcomes
  std::size_t rows = 0;   // that tie, the fastest one of them
};

/// An order of outcomes, and which of them to take. Of those that fit, or may fit, and are at most
/// `within` slower than the fastest, the one with the least memory on its fullest device is
/// recommended; where some tie with the fastest, the one of them that is to be taken. `names`: of
/// the outcomes, in the sentence; empty: their schedules.
struct Ranked {
  // Into the outcomes, the fastest first; behind these steps that are lower bounds, and last those
  // that do not fit.
  std::vector<std::size_t> order;
  std::optional<std::size_t> fastest;      // into the outcomes; empty where none fits
  std::optional<std::size_t> recommended;  // the same
  std::string sentence;  // the recommended and the fastest, with time and memory, and the reason
};
Ranked rank(std::span<const Outcome* const> outcomes, double within = default_within,
            std::span<const std::string> names = {}, const std::optional<Tie>& tie = {});

}  // namespace stageline
