// What the numbers on ops count, and which way a micro-batch goes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tools/report/timeline/drawing.hpp"

namespace stageline::report {

/// By micro-batch, its direction: 0, 1, … in the order of the devices of its first stage. Empty
/// unless some device has stages of two directions, and each of its stages is of one: chimera,
/// dualpipe and the like, but not replicas of a stage.
std::vector<int> directions_of(const Timeline& timeline);

/// The numbers of a drawing's ops.
class SpanNumbers {
 public:
  SpanNumbers(const Drawing& drawing, OpNumbers counted);

  /// The number; "U" of an update, and nothing of an op that reads no weights where versions are
  /// counted.
  std::string of(int device, const Op& op) const;
  /// The number of the stage, smaller; empty where versions are counted.
  std::string of_stage(const Op& op) const;
  /// Whether the op has a number where not all have room: every eighth micro-batch.
  bool is_eighth(const Op& op) const;
  /// A footnote; empty of the usual numbers.
  std::string note() const;

 private:
  using ReadKey = std::tuple<int, OpKind, std::uint16_t, std::uint32_t>;

  OpNumbers counted_;
  std::vector<std::uint32_t> own_;          // by micro-batch, its number in its direction
  std::map<ReadKey, std::uint32_t> reads_;  // versions
};

}  // namespace stageline::report
