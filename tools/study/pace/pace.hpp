// The pace of a schedule in the steady state: derived from its event graph, or else measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/rhythm.hpp"
#include "sim/analysis/steady_state.hpp"
#include "tools/study/case.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/run/run.hpp"

namespace stageline {

/// The rounds of a run that repeat, and their period.
struct Derived {
  int round = 1;  // micro-batches
  EventGraph events;
  Period period;
  std::vector<Path> paths;             // the events' paths point here
  std::vector<std::string> resources;  // names of the shared links
};

struct Pace {
  SteadyStep step;
  Time with_free_links{};          // the step of the same order if links took no time
  int round = 1;                   // micro-batches
  std::optional<Period> period;    // of rounds; empty: none of a long run were alike, so step is
                                   // measured
  std::optional<Derived> derived;  // with a period, where its cycle is asked for
};

/// What a pace is asked for. Without its cycle, that of flushed steps is read off one of them
/// (lone_step), or three (QuickPace), and the period names no cycle: the same time, in a small part
/// of the work.
enum class PaceOf : std::uint8_t { steps, cycle };

/// How many steps of the case pace_of() looks at first.
int steps_of_a_pace(const Case& asked, const Layout& layout, bool synchronous);

/// How many it looks at where these show none.
int most_steps_of_a_pace(const Case& asked, const Layout& layout, bool synchronous);

/// Runs the schedule, or a given program that repeats, long enough, looks for rounds that are alike
/// and derives the period of their event graph; where none are, the step is what the long run's
/// last rounds show. Rounds are those of all replicas, or several of them (where messages queue for
/// a link, their order may come back after more than one), or whole steps. A flushed step is its
/// own round. `runs`: of the same case and layout.
Pace pace_of(const Case& asked, const Layout& layout, Runs& runs, bool synchronous,
             PaceOf what = PaceOf::steps);

/// The pace of a program as long as it is: the period of its event graph where it holds rounds that
/// are alike, as of the schedule that it came from, else a mean. A flushed program's mean leaves
/// out the first step and, of three or more, the last; for a single step it is the makespan. A
/// stream's includes filling and draining, and so does that of flushed steps of which some reduce
/// their gradients and others do not. A step is never shorter than what the busiest lane or
/// link does in it. A mean of three flushed steps or more, or of a stream, is not settled.
Pace pace_of(const Run& run, PaceOf what = PaceOf::steps);

/// The step of three flushed ones whose flows share links, where the last two last equally long:
/// then that is the step of pace_of().
std::optional<Time> repeated_step(const Program& program, const TaskGraph& graph,
                                  const TaskTimes& times);

/// How many steps a program without flush needs to show its pace whatever its order, if any do.
int steps_of_a_stream(const Program& program);

}  // namespace stageline
