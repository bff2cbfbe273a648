// One device a process: each process reports the tasks that it has done to those that wait for
// them. The completion board is that of a run in one process, filled by messages for the tasks of
// others.
//
//     task done here ──► every process that waits for it is notified, with the tensors it made
//     SEND           ──► its payload is sent; it counts as there when it has come, or when a link
//                        as slow as the cluster's would have brought it
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "sim/task_graph.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/run/completion_board.hpp"
#include "tools/executor/run/exchange.hpp"
#include "tools/executor/run/job.hpp"
#include "tools/executor/run/optimizer_shards.hpp"

namespace stageline::executor {

class Remote {
 public:
  /// Device d is that of rank d. All of these outlive it.
  Remote(Peers& peers, const Job& job, const TaskGraph& graph, const GatherNeeds& gathers,
         Exchange& exchange, CompletionBoard& board, std::vector<Time>& start);
  ~Remote();
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;

  int rank() const { return peers_.rank(); }
  /// When it returns, all processes have ended their last run, and all their messages have come.
  void meet() { peers_.barrier(); }
  /// Waits for the others. Returns the moment at which all begin, on this process's steady clock.
  std::chrono::steady_clock::time_point agree_on_start();
  void restart();
  /// Notifies the processes that wait for this task of this device.
  void done(std::uint32_t task, Time at);
  /// Sends all messages whose time has come.
  void poll(Time now);
  bool idle();
  void fail(const std::string& why) { peers_.fail(why); }
  /// Throws PeerFailure when another process has failed.
  void check() const;
  std::vector<std::string> gather(const std::string& mine) { return peers_.gather(mine); }

 private:
  void take(int from, Delivery delivery);
  void add_reader(int reader, std::uint32_t needed);
  Tensors payload_of(std::uint32_t task);
  Tensors part_for(int rank, Op op, const Tensors& payload) const;
  void unpack(std::uint32_t task, const Tensors& tensors);

  Peers& peers_;
  const Job& job_;
  const TaskGraph& graph_;
  Exchange& exchange_;
  CompletionBoard& board_;
  std::vector<Time>& start_;               // by task
  std::vector<std::vector<int>> waiting_;  // by task: other ranks that wait for it
  std::mutex mutex_;
  std::vector<std::uint32_t> lanes_;  // this device's send lane, if it has one
  std::uint32_t head_ = 0;
  Time lane_free_{};
  std::int64_t origin_ = 0;  // ns of the common clock
  std::atomic<std::int64_t> announced_start_{0};
};

}  // namespace stageline::executor
