// Arrows of a space-time diagram: which op's result reaches which op.
//
//   gpu0  |0F0|\                 |0B0|           messages: from the op that makes what is sent to
//   gpu1        \|1F0|  |1B0|····/                 the first op that takes it
//
//   gpu0  |0U0|⌒⌒⌒⌒⌒⌒|0F3|                       versions: from the update that makes a version of
//                                                  the weights to the first op that reads it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/op.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline::report {

/// Which arrows a picture has. By default it has none.
struct ArrowChoice {
  bool messages = false;
  std::optional<std::uint32_t> microbatch;  // with `messages`: those of this one alone
  bool weights = false;

  bool any() const { return messages || weights; }
};

/// Reads "messages", "messages:3" (of micro-batch 3, from 0) and "weights", each at most once.
/// Throws UsageError for anything else.
ArrowChoice arrow_choice(const std::vector<std::string>& words);

/// One end of an arrow: an op of a compute lane.
struct ArrowEnd {
  Op op;
  int device = 0;
  Time at{};  // of the sender its end, of the receiver its start
};

/// An arrow. `cargo` weights: the update `from` made a version that `to` is the first to read on
/// its device.
struct Arrow {
  Cargo cargo = Cargo::activation;
  ArrowEnd from;
  ArrowEnd to;
};

/// Messages between devices, by the rules of sim/rules.hpp: an activation, a gradient or a stash.
/// Each goes to the op that takes it first. In order of arrival.
std::vector<Arrow> message_arrows(const Program& program, const Timeline& timeline);

/// Versions of weights that updates of the run make, and that some pass of it reads: one arrow for
/// each version on each device, by versions_read(). In order of arrival.
std::vector<Arrow> version_arrows(const Program& program, const Timeline& timeline);

}  // namespace stageline::report
