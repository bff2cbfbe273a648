// What could be made faster: kinds of ops, stages, devices, links, and the part of every task's
// time that each of them is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/derivatives.hpp"
#include "sim/costs.hpp"
#include "sim/op.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"
#include "tools/study/case.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline {

enum class LeverKind : std::uint8_t {
  op_kind,      // all ops of a kind: of messages their bytes, of reductions and copies all
  stage,        // all compute of a stage, without the collectives in it
  stage_op,     // one kind of op of a stage, as op_kind
  device,       // all compute of a device, without the collectives in it
  memory,       // compute bound by memory, and updates
  collectives,  // blocking collectives, which are part of the times of compute ops
  bandwidth,    // bytes between devices, of messages and reductions
  latency,      // of the same
  route,        // bytes of messages from one device to another
};
/// "op-kind", "stage", …, as in JSON.
std::string_view name(LeverKind kind);

struct Lever {
  LeverKind kind = LeverKind::op_kind;
  std::string name;                    // "backward", "stage 2 (gpu2)", "links: bandwidth"
  std::optional<OpKind> op;            // op_kind, stage_op; of a message the SEND
  std::optional<int> stage;            // stage, stage_op
  std::optional<int> device;           // device; stage that is alone on its device; route: from
  std::optional<int> to;               // route
  std::optional<Dimension> dimension;  // collectives; empty: all of them
};

/// The levers of one program, and the part of the tasks' times that they are. Refers to its
/// arguments, which must outlive it.
class Levers {
 public:
  /// `graph`: compiled of the program and the costs, with the times that ops take alone.
  Levers(const Case& asked, const Layout& layout, const Costs& costs, const Program& program,
         const TaskGraph& graph);

  /// Those that take any time, in the order of LeverKind.
  const std::vector<Lever>& all() const { return levers_; }
  /// All times of the graph, with all durations of overlapped pairs.
  const TaskTable& times() const { return times_; }
  TaskTable part(const Lever& lever) const;
  /// Whether the part of a transfer that the lever has includes Path::setup.
  static bool has_setups(const Lever& lever);

 private:
  // Shares of the time of an op of each kind, by stage.
  using OpShares = std::vector<std::array<double, op_kinds>>;

  void find_pairs();
  void find_memory_shares(const Case& asked, const Layout& layout);
  void list(const Case& asked);
  void add(Lever lever);
  double compute_share(const Lever& lever, Op op, int device) const;
  struct Pair {
    PairHalf one;
    PairHalf other;
  };
  Pair pair_of(std::uint32_t task) const;
  void set_hiding(const Pair& pair, std::uint32_t task, TaskTable& table) const;
  static bool has_transfers(const Lever& lever, Op op);
  bool takes_time(const Lever& lever) const;
  void set_compute(const Lever& lever, std::uint32_t task, TaskTable& part) const;
  void set_transfer(const Lever& lever, std::uint32_t task, TaskTable& part) const;
  void set_head_start(const Lever& lever, std::uint32_t task, TaskTable& part) const;

  const Costs& costs_;
  const Program& program_;
  const TaskGraph& graph_;
  TaskTable times_;
  OpShares memory_share_;
  std::vector<bool> whole_backward_;  // by stage: whether it has B
  std::vector<Lever> levers_;
};

}  // namespace stageline
