// Everything that can be said against a program: what check() refuses, deadlocks, messages in
// different orders at their two ends, and messages that keep a device from work.
#pragma once

#include <map>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/costs.hpp"

namespace stageline {

struct LintOptions {
  const TextPlaces* places = nullptr;  // where the program was read: lines and columns
  const Costs* costs = nullptr;        // nothing: unit_costs(), whose messages are free
  std::size_t most = 20;               // findings of a rule; more are counted
};

struct Lint {
  std::vector<LintFinding> findings;  // in the order of the text, those without a place first
  std::map<LintRule, std::size_t> left_out;  // beyond the most
  int count(Severity severity) const;
};

/// `program` as it was read. Deadlocks are looked for in what complete() makes of it, in spite of
/// errors elsewhere: ops that cannot be are left out, what is missing is taken to be there. What a
/// message in a bad place costs is what is gained by moving it, as simulated: where messages are
/// async, under the strictest setting that does not deadlock, as a note. O(ops) for all but
/// deadlocks and costs, each of which takes a simulation.
Lint lint(const Program& program, const LintOptions& options = {});

}  // namespace stageline
