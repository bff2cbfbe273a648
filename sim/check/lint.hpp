// Diagnostics for a program: the errors of check(), deadlocks, messages in different orders at
// their two ends, and messages that block a device.
#pragma once

#include <map>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/costs.hpp"

namespace stageline {

struct LintOptions {
  const TextPlaces* places = nullptr;  // lines and columns of the program's text, if it has one
  const Costs* costs = nullptr;        // null: unit_costs(), with free messages
  std::size_t most = 20;               // the most findings per rule; more are only counted
};

struct Lint {
  std::vector<LintFinding> findings;  // in the order of the text, those without a place first
  std::map<LintRule, std::size_t> left_out;  // findings beyond LintOptions::most
  int count(Severity severity) const;
};

/// `program` as it was read, before complete(). Deadlocks are searched for after complete(), in
/// spite of errors elsewhere: impossible ops are left out, and missing ones are taken to exist. The
/// cost of a message in a bad place is the time that a simulation gains by moving it; for async
/// messages, under the strictest setting that does not deadlock, as a note. O(ops) except for
/// deadlocks and costs, which take a simulation each.
Lint lint(const Program& program, const LintOptions& options = {});

}  // namespace stageline
