// Advice on a whole comparison: whether to leave the pipeline out, and how to fit into memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/planner/cheapest_change.hpp"

namespace stageline {

/// That one device does the same step in less time than every row that fits, or every synchronous
/// one, with its time and memory as simulated. Empty where a synchronous row is faster, where no
/// row fits, and of given programs.
std::string one_device_advice(const SettingRequest& request, const Setting& setting,
                              const std::vector<Row>& rows);

/// A changed row, in words.
struct WayToFit {
  planner::ChangedCandidate changed;
  std::string what;      // "1f1b with --recompute full@0-1"
  std::string flags;     // all that ask for it, beside the trace, the cluster and its memory
  bool derived = false;  // from costs of another micro-batch size, scaled or fitted

  /// "82.00 ms a step (24.2 % slower), 19.00 MB of 20.00 MB on gpu0"
  std::string figures(const planner::Candidate& from) const;
};

struct WaysToFit {
  std::vector<WayToFit> fitting;       // the cheapest first, one of each kind of change; at most 3
  std::optional<WayToFit> nearest;     // nothing fits: the one that lacks least
  planner::CheapestChange search;      // what was tried
  std::optional<std::size_t> row;      // the one that lacks least; empty where nothing was asked
  std::vector<std::string> sentences;  // for people; empty where nothing was asked
};

/// Where no row fits: the cheapest change after which one does, with its flags, step and memory,
/// and the cheapest of other kinds; where there is none, the change that lacks least memory; and
/// what was tried (tools/planner/changes.hpp), from the rows that lack least on. Where the order of
/// devices is searched, changes are tried in the given one, and those that are named again in the
/// best of each. Nothing where a row fits or memory is unknown, and of given programs; a sentence
/// alone where the trace or the cluster can be read once. `workers` as in compare().
WaysToFit ways_to_fit(const SettingRequest& request, const Setting& setting,
                      const std::vector<Row>& rows, int workers = 0);

}  // namespace stageline
