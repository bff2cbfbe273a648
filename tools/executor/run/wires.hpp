// The links of a cluster, imitated in real time: a message, or a copy to or from a host whose
// memory is the device's, takes the time that the simulator gives it on those links, counted from
// the moment at which it could really leave. As with a network card, no thread waits for it and no
// processor works for it. The imitation is exact: requests for a shared link are served in order of
// time, by the next thread that polls (see `run` in sim/engine.hpp).
#pragma once

#include <mutex>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/task_graph.hpp"
#include "tools/executor/run/completion_board.hpp"

namespace stageline::executor {

/// The send lanes of a task graph, and its copy lanes where nobody else walks these.
class Wires {
 public:
  Wires(const TaskGraph& graph, CompletionBoard& board);
  void restart(bool with_copies);
  /// Serves all requests until now. Any thread may call it at any time.
  void poll(Time now);
  /// Whether all that they serve has left.
  bool idle();

 private:
  const TaskGraph& graph_;
  CompletionBoard& board_;
  std::mutex mutex_;
  std::vector<std::uint32_t> lanes_;  // into graph.lanes
  std::vector<std::uint32_t> head_;   // by lane of these, into graph.lane_task
  std::vector<Time> lane_free_;       // by lane of these
  std::vector<Time> resource_free_;   // by resource
};

}  // namespace stageline::executor
