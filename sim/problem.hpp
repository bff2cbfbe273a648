// The input of a scheduler.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/costs.hpp"
#include "sim/placement.hpp"
#include "sim/program.hpp"

namespace stageline {

/// Knob values as text, with defaults filled in.
using Knobs = std::map<std::string, std::string>;

struct Problem {
  Placement placement;
  Costs costs;
  int microbatches = 1;  // per step
  int steps = 1;
  std::vector<std::string> devices;               // names
  std::vector<std::optional<Bytes>> memory;       // by device
  std::vector<std::optional<Bytes>> host_memory;  // by host of Network::hosts; empty: unknown
  std::vector<bool> one_layer;  // by stage: its W need not wait for its I; empty: no such stage
  Knobs knobs;
};

/// Most forwards in one program; it has as many backwards, and messages.
inline constexpr int most_forwards = 1 << 24;

/// Refuses so many with a UsageError that says what they are made of, at least how much memory they
/// would take, and what to ask for fewer of: "60000000 micro-batches × 1 step", "micro-batches or
/// steps".
[[noreturn]] void refuse_forwards(const std::string& what, double forwards,
                                  const std::string& fewer);

/// A program without ops: devices, placement, edges, micro-batches, steps.
Program blank_program(const Problem& problem, std::string schedule, WeightRule weights);

}  // namespace stageline
