// Runs of one case, of as many steps as the answer needs: scheduled once, simulated as often as
// asked for.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/engine.hpp"
#include "sim/program.hpp"
#include "tools/study/case.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline {

/// A program and when each of its tasks runs.
struct Run {
  Program program;        // complete
  std::string reordered;  // why its messages are not in the usual order; empty: they are
  TaskGraph graph;
  TaskTimes times;
};

/// Completes, compiles and simulates a program; `validated`: validates it before it is compiled.
/// Throws what those throw.
Run run_of(Program program, const Costs& costs, bool validated = false);

/// The runs of one case by their number of steps.
class Runs {
 public:
  /// Refers to its arguments, which must outlive it. `longest`: the steps of the longest run that
  /// is expected.
  Runs(const Case& asked, const Layout& layout, const Costs& costs, int longest)
      : asked_(asked), layout_(layout), costs_(costs), longest_(longest) {}

  /// Same as program_of() for so many steps. Does not schedule again where the program of fewer
  /// steps is the beginning of one of more, or one of more repeats what is there.
  Program program(int steps);

  /// Whether the program of any number of flushed steps is that of one step, repeated.
  bool repeat_one_step();
  /// Whether the second of two flushed steps is known to be another than the first: with an odd
  /// number of micro-batches in two directions it is its mirror image.
  bool second_step_differs();

  const Costs& costs() const { return costs_; }

  /// The run of so many steps, made when it is first asked for; refers to it until it is taken.
  const Run& of(int steps);
  /// The same, of a program that is validated where this call makes the run.
  const Run& validated(int steps);
  /// That run, no longer kept here.
  Run take(int steps);

 private:
  bool can_schedule(int steps) const;
  const Run& keep(int steps, bool validated);

  const Case& asked_;
  const Layout& layout_;
  const Costs& costs_;
  int longest_;
  std::optional<Program> scheduled_;
  std::optional<bool> second_differs_;
  std::map<int, Run> runs_;  // by steps
};

}  // namespace stageline
