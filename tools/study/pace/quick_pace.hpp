// The pace of a flushed schedule, read off three steps without looking for its longest cycle.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// Whether tasks wait for more than an event graph has: flows that share links at once take no
/// turns there, and head starts of flows follow ends as they are planned at the moment, which other
/// flows move afterwards. Steps then repeat up to rounding.
inline bool flows_take_no_turns(const TaskGraph& graph) {
  return is_fair(graph) && (shares_resources(graph) || has_head_starts(graph));
}

/// Where every task of the third step starts as much later than in the second one, by c, that is
/// the period of the event graph that pace_of() derives: no task starts before what it waits for
/// ends, so no cycle of waits is longer than c for each round; and each task starts at once when
/// the last of them ends, so going back from wait to wait closes a cycle of exactly c. What is left
/// is whether pace_of() derives an event graph at all, which the same rules decide here.
class QuickPace {
 public:
  /// Takes three flushed steps, completed and compiled, whose messages are async.
  QuickPace(const Program& program, const TaskGraph& graph);

  /// The period of a run of that graph at any costs. Empty: its event graph has to be asked.
  std::optional<Time> step(const TaskGraph& graph, const TaskTimes& times) const;

  /// The same if links took no time, from sweep_with_free_links(), for a run that has a step().
  std::optional<Time> step_with_free_links(const TaskTimes& times) const;

 private:
  static constexpr int steps = 3;
  struct Task {
    std::uint32_t node = 0;
    int step = 0;
  };

  bool number_tasks(const Program& program, const TaskGraph& graph);
  void compare_waits(const TaskGraph& graph);
  static std::vector<std::vector<std::uint32_t>> turns(const TaskGraph& graph,
                                                       const TaskTimes& times);
  bool goes_by_steps(const std::vector<std::uint32_t>& order, const std::vector<char>& early) const;
  bool turns_repeat(const TaskGraph& graph, const TaskTimes& times,
                    const std::vector<char>& early) const;

  bool regular_ = false;  // every op is there once a step, and waits for the same in the last two
  std::vector<std::array<std::uint32_t, steps>> nodes_;  // by op of a step: its tasks
  std::vector<Task> of_task_;
  std::vector<char> same_first_;  // by node: waits for the same in the first two steps
  std::uint32_t begin_ = 0;       // the task from whose start pace_of() counts rounds
};

}  // namespace stageline
