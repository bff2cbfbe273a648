// How far a flushed step is from the shortest that any order has with as many stashes on a device.
#pragma once

#include <optional>
#include <string>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

struct StashGap {
  int stashes = 0;  // the most that a device holds
  Time span{};      // the longest device span
  Time bound{};     // no order that holds no more has a shorter one; updates included
  std::string why;  // in words, with its device

  /// The span above the bound, as a share of it; 0: optimal.
  double share() const;
};

/// I and W apart or not: the bound is that of orders that may keep them apart. Nothing where it is
/// not known: several pipelines, a schedule that does not flush or cuts sequences, stages that do
/// not follow one another or are rebuilt or copied.
std::optional<StashGap> stash_gap(const Case& asked, const Outcome& outcome);
/// The same without the span, of a complete program of one step; `peaks`: the most stashes that
/// each device holds.
std::optional<StashGap> stash_gap(const Case& asked, const Program& program, const Costs& costs,
                                  const std::vector<int>& peaks);

/// Whether it is one flushed step of F, and B or I and W, each once and whole, whose stages have
/// one device each.
bool is_plain_step(const Case& asked, const Program& program);

/// Whether it has F, and B or I and W, once a micro-batch and stage, each whole.
bool is_plain(const Program& program);

/// "longest span 27.00 ms, optimal: no order under 4 stashes is shorter (gpu0: …)".
std::string in_words(const StashGap& gap);

}  // namespace stageline
