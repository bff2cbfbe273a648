// What the devices of a counted run hold: allocations as they happen, messages from when they come
// until they have left, and stashes, on the clock of the run.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/task_graph.hpp"
#include "tools/executor/devices/accelerators.hpp"
#include "tools/executor/run/completion_board.hpp"
#include "tools/executor/run/job.hpp"
#include "tools/executor/run/run_record.hpp"
#include "tools/executor/run/stage_messages.hpp"
#include "tools/executor/run/stash_log.hpp"
#include "tools/executor/tensors/memory_log.hpp"

namespace stageline::executor {

class HeldRecord {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// All but `devices` outlive it.
  HeldRecord(const Job& job, const TaskGraph& graph, const CompletionBoard& board,
             const std::vector<Accelerator>& devices);

  /// Forgets all runs before.
  void restart();
  /// The moment that the times on the board count from.
  void begin(Moment origin) { origin_ = origin; }
  /// The SEND of that message; empty: none carries it.
  std::optional<std::uint32_t> send_of(Cargo cargo, int wire, std::uint32_t number) const;
  /// Sets those of a device that report what it holds.
  void set_hooks(std::size_t device, MessageHooks& hooks);

  /// While it lives, allocations of this thread are the device's.
  std::unique_ptr<c10::DebugInfoGuard> listen(std::size_t device) const {
    return device_[device].log.listen();
  }
  /// Notes an op in the compute lane's current task, which ended() follows.
  void computed(std::size_t device, Op op, const StashChange& change);
  void ended(std::size_t device, Time start, Time end);
  /// While it lives, what this thread allocates and frees counts as of that time of the run.
  std::unique_ptr<c10::DebugInfoGuard> date(std::size_t device, Time at) const {
    return device_[device].log.date(moment(at));
  }
  /// Notes a copy of the copy lanes: the stash is there from that moment on, or has gone.
  void copied(std::size_t device, Time at, std::int64_t bytes);

  /// Once, at the end of a run: the most that a device has held beside what stays all the time.
  HeldBytes held(std::size_t device);

 private:
  // When a tensor begins to arrive, and when it has left its sender.
  struct Passage {
    Time comes{};
    Time left{};
  };
  Passage passage_of(Cargo cargo, int wire, std::uint32_t number) const;
  Passage passage_of(std::uint32_t send) const;
  Moment moment(Time at) const {
    return origin_ + std::chrono::duration_cast<Moment::duration>(at);
  }

  struct Device {
    explicit Device(at::Device where) : log(where) {}
    MemoryLog log;
    StashLog stashes;
    std::vector<std::pair<Op, StashChange>> changes;  // of the task that runs
  };
  const Job& job_;
  const TaskGraph& graph_;
  const CompletionBoard& board_;
  std::map<std::tuple<Cargo, int, std::uint32_t>, std::uint32_t> message_;  // → task
  std::map<Op, std::uint32_t> maker_;  // → task of the compute lane
  std::deque<Device> device_;
  Moment origin_{};
};

}  // namespace stageline::executor
