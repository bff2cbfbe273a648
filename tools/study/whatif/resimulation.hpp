// The pace of a run whose order in the lanes stays, where one lever takes another time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "sim/costs.hpp"
#include "sim/task_graph.hpp"
#include "tools/study/pace/quick_pace.hpp"
#include "tools/study/run/run.hpp"
#include "tools/study/whatif/levers.hpp"

namespace stageline {

/// Looks at as little of the run as shows its pace: at one flushed step, where the next one repeats
/// it (lone_step); at the run; or, where its flushed steps last differently with the changed times,
/// at one so long that their period shows.
class Resimulation {
 public:
  /// `run`: of the case, as long as shows its step; `alone`: its graph with the times that tasks
  /// take alone, of which `levers` are. Refers to its arguments, which must outlive it.
  Resimulation(const Case& asked, const Layout& layout, const Costs& costs, const Run& run,
               const TaskGraph& alone, const Levers& levers, Time step);

  // A program of some number of steps, and what is made of it.
  struct Level {
    const Program* program = nullptr;
    const TaskGraph* alone = nullptr;
    const Levers* levers = nullptr;
    std::unique_ptr<Program> own_program{};
    std::unique_ptr<TaskGraph> own_graph{};
    std::unique_ptr<Levers> own_levers{};
  };
  struct Bench;

  /// Simulates one lever; for one thread.
  class Changed {
   public:
    Changed(const Resimulation& of, const Lever& lever);
    ~Changed();
    Changed(const Changed&) = delete;
    Changed& operator=(const Changed&) = delete;

    /// With the lever's times multiplied by the factor; each factor is simulated once.
    Time step(double factor);

   private:
    std::optional<Time> lone_step_at(double factor);
    std::optional<Time> step_of_run(double factor);
    Time step_of_longer(double factor);

    const Resimulation& of_;
    const Lever& lever_;
    std::unique_ptr<Bench> lone_;
    std::unique_ptr<Bench> run_;
    std::unique_ptr<Bench> longer_;
    std::map<double, Time> known_;  // by factor
  };

 private:
  Level level_of(Program program) const;
  void find_lone(Time step);
  const Level& longer() const;

  const Case& asked_;
  const Layout& layout_;
  const Costs& costs_;
  Level lone_;  // without a program where one step does not show the pace
  Level run_;
  std::optional<QuickPace> quick_;
  int longest_ = 0;  // steps
  mutable std::once_flag made_longer_;
  mutable Level longer_;
};

}  // namespace stageline
