// The program lowered to flat arrays: tasks in a topological order, lanes, dependencies, durations.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/units.hpp"
#include "sim/costs.hpp"
#include "sim/deadlock.hpp"
#include "sim/op.hpp"
#include "sim/program.hpp"

namespace stageline {

struct StageGraph;  // sim/wires.hpp

struct Lane {
  int device = 0;
  LaneKind kind = LaneKind::compute;
  friend bool operator==(const Lane&, const Lane&) = default;
};

/// The resources that a task holds besides its lane, for its duration (acquired together), and the
/// lag from its end until other tasks can use its result (a link's latency). Under fair sharing the
/// task is a flow: `setup`, then its bytes, at a rate of `bandwidth` or less.
struct Path {
  Time lag{};
  std::vector<std::uint32_t> resources;
  Time head_start{};         // the task may start so long before what it needs is available
  Time setup{};              // the part of the duration before its bytes move
  std::vector<double> load;  // by entry of resources: bytes across it a byte of the flow; empty: 1
  Bandwidth bandwidth = Bandwidth::unlimited();  // of the flow alone
  Tier tier = Tier::other;
  bool is_message = false;             // or a copy to or from the host; else a collective
  std::vector<std::uint16_t> devices;  // on which compute is slowed meanwhile
  friend bool operator==(const Path&, const Path&) = default;
};

/// Numbered so that every task comes after what it needs and after its predecessor in its lane.
/// A SEND and its RECV are one task, in the sender's lane. Where messages block, the RECV is a task
/// of its own: the next one after the SEND, which it needs, as long as the latency (its path has no
/// lag). A device then has as many send and receive lanes as its largest batch has messages.
/// `path[0]` is the empty path.
struct TaskGraph {
  std::vector<Op> op;                  // the SEND of a message, the first of an overlapped pair
  std::vector<Op> partner;             // parallel to `op` if any pair is overlapped, else empty
  std::vector<std::uint16_t> lane;     // index into lanes
  std::vector<std::uint16_t> path_of;  // index into paths
  std::vector<Time> duration;
  std::vector<std::uint32_t> need_begin;  // CSR, tasks + 1
  std::vector<std::uint32_t> need;        // tasks of other lanes that must be done first
  std::vector<std::uint32_t> lane_begin;  // CSR, lanes + 1
  std::vector<std::uint32_t> lane_task;   // tasks of each lane, in order
  std::vector<Lane> lanes;
  std::vector<Path> paths;
  std::vector<std::string> resources;  // names of the shared ones
  std::vector<Bandwidth> capacity;     // by resource, under fair sharing; else empty
  std::vector<Bytes> bytes;            // by task: of its flow, under fair sharing; else empty
  std::array<double, tiers> overlap_slowdown{};   // as Costs::overlap_slowdown
  std::array<double, tiers> message_slowdown{};   // as Costs::message_slowdown
  std::array<double, tiers> transfer_slowdown{};  // as Costs::transfer_slowdown
  std::vector<std::string> devices;               // names

  std::uint32_t tasks() const { return static_cast<std::uint32_t>(op.size()); }
};

/// Lowers a valid program. Every op gets its duration from the tables, a message its route. Throws
/// Deadlock if the program cannot finish, ProgramError if an op needs what no op makes, if an
/// overlapped op has no second one, or if program and costs have different stages, edges or
/// devices, UsageError if a transfer, or the sum of all tasks, takes longer than `longest_run`.
/// O(ops). Keeps buffers for the next program, by thread, of at most 256 MB.
TaskGraph compile(const Program& program, const Costs& costs);

/// The deadlocks that compile() would find one after another if each were undone in turn, at most
/// `most`. A need that no op meets, or only a later op of the same lane, counts as met. O(ops)
/// each.
std::vector<Deadlock> deadlocks_of(const Program& program, const Costs& costs, std::size_t most);

/// The time that compile() charges for one op on its device; for a message, the time on the wire.
Time duration_of(const Program& program, const Costs& costs, Op op);

/// The bytes of a message: the edge's activation, or the share of the gradient that its wire
/// carries; the part of a stash that the receiver's I or W reads; the stage's weights.
Bytes message_bytes(const Program& program, const Costs& costs, const StageGraph& graph,
                    Op message);

/// Whether tasks of several lanes use the same resource. If not, sweep and run agree exactly.
bool shares_resources(const TaskGraph& graph);

}  // namespace stageline
