// The pace of a schedule in the steady state: derived from its event graph, or else measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/steady_state.hpp"
#include "tools/layout.hpp"
#include "tools/steady.hpp"
#include "tools/study.hpp"

namespace stageline {

/// What repeats, and the period that follows from it.
struct Derived {
  int round = 1;  // micro-batches
  EventGraph events;
  Period period;
  std::vector<Path> paths;             // the events' paths point here
  std::vector<std::string> resources;  // names
};

struct Pace {
  SteadyStep step;
  Time with_free_links{};          // the step of the same order if links took no time
  std::optional<Derived> derived;  // nothing: no rounds of a long run were alike; then measured
};

/// Runs the schedule, or a given program that repeats, long enough, looks for rounds that are alike
/// and derives the period of their event graph; where none are, the step is what the long run's
/// last rounds show. Rounds are those of all replicas, or several of them (where messages queue for
/// a link, their order may come back after more than one), or whole steps. A flushed step is its
/// own round.
Pace pace_of(const Case& asked, const Layout& layout, const Costs& costs, bool synchronous);

}  // namespace stageline
