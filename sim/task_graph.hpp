// The program lowered to flat arrays: tasks in a topological order, lanes, dependencies, durations.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/costs.hpp"
#include "sim/errors.hpp"
#include "sim/op.hpp"
#include "sim/program.hpp"
#include "sim/units.hpp"

namespace stageline {

struct StageGraph;  // sim/rules.hpp

struct Lane {
  int device = 0;
  LaneKind kind = LaneKind::compute;
  friend bool operator==(const Lane&, const Lane&) = default;
};

/// What a task takes beside its lane: shared resources for its duration (acquired together), and a
/// lag between its end and the moment others can use what it made (a link's latency).
struct Path {
  Time lag{};
  std::vector<std::uint32_t> resources;
  friend bool operator==(const Path&, const Path&) = default;
};

/// Numbered so that every task comes after what it needs and after its predecessor in its lane.
/// A SEND and its RECV are one task, in the sender's lane. Where messages block, the RECV is a task
/// of its own, right behind the SEND in number and need, as long as the latency (its path has no
/// lag); and a device has as many send and receive lanes as messages stand in one batch.
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
  std::vector<std::string> resources;  // names of what the paths share
  std::vector<std::string> devices;    // names

  std::uint32_t tasks() const { return static_cast<std::uint32_t>(op.size()); }
};

/// Lowers a valid program. Every op gets its duration from the tables; a message its route. Throws
/// Deadlock when the program cannot finish, ProgramError when an op needs what no op makes, or when
/// program and costs speak of different stages, edges or devices; UsageError when a transfer, or
/// the sum of all that is done, takes longer than `longest_run`. O(ops).
TaskGraph compile(const Program& program, const Costs& costs);

/// All the deadlocks that compile() would find one after another, were each undone in turn, `most`
/// at most. An op that needs what nobody makes, or what stands behind it in its own lane, is taken
/// to have it. O(ops) each.
std::vector<Deadlock> deadlocks_of(const Program& program, const Costs& costs, std::size_t most);

/// What compile() charges for one op on the device it is placed on. Messages: the time on the wire.
Time duration_of(const Program& program, const Costs& costs, Op op);

/// The bytes of a message: the edge's activation, or the gradient's share that its wire carries;
/// of a stash what the receiver's I or W reads; the stage's weights.
Bytes message_bytes(const Program& program, const Costs& costs, const StageGraph& graph,
                    Op message);

/// Resources that tasks of more than one lane use. Without any, sweep and run agree exactly.
bool shares_resources(const TaskGraph& graph);

}  // namespace stageline
