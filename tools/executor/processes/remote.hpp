// One device a process: what a process tells the others of the tasks it has done, and what it hears
// of theirs. The same board as in one process, filled by messages where the task is elsewhere.
//
//     task done here ──► whoever elsewhere waits for it hears of it, with the tensors it made
//     SEND           ──► its parcel goes out; it is there when it has come, or when a link as slow
//     as
//                        the cluster's would have brought it
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "sim/task_graph.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/run/exchange.hpp"
#include "tools/executor/run/stage_tensors.hpp"
#include "tools/executor/run/wires.hpp"

namespace stageline {

class Remote {
 public:
  /// Device d is that of rank d. All of these outlive it.
  Remote(Peers& peers, const Job& job, const TaskGraph& graph, Exchange& exchange, Board& board,
         std::vector<Time>& start);
  ~Remote();
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  int rank() const { return peers_.rank(); }
  /// When it returns, all processes have ended their last run, and all that they said has come.
  void meet() { peers_.barrier(); }
  /// Waits for the others; the moment at which all begin, on this process's steady clock.
  std::chrono::steady_clock::time_point agree_on_start();
  void restart();
  /// A task of this device has been done: tells those that wait for it.
  void done(std::uint32_t task, Time at);
  /// Lets all messages leave whose time has come.
  void poll(Time now);
  bool idle();
  void fail(const std::string& why) { peers_.fail(why); }
  /// Throws PeerFailure when another process has failed.
  void check() const;
  std::vector<std::string> gather(const std::string& mine) { return peers_.gather(mine); }

 private:
  void take(int from, Delivery delivery);
  Tensors payload_of(std::uint32_t task);
  void unpack(std::uint32_t task, const Tensors& tensors);
  Time now() const;

  Peers& peers_;
  const Job& job_;
  const TaskGraph& graph_;
  Exchange& exchange_;
  Board& board_;
  std::vector<Time>& start_;               // by task
  std::vector<std::vector<int>> waiting_;  // by task: ranks elsewhere that wait for it
  std::mutex mutex_;
  std::vector<std::uint32_t> lanes_;  // this device's send lane, if it has one
  std::uint32_t head_ = 0;
  Time lane_free_{};
  std::int64_t origin_ = 0;  // ns of the common clock
  std::atomic<std::int64_t> start_told_{0};
};

}  // namespace stageline
