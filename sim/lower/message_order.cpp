// Orders the messages of a program whose messages block.
#include "sim/lower/message_order.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "sim/engine.hpp"
#include "sim/lower/rewriting.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"

namespace stageline {
namespace {

// Where every backward has its own update, a RECV right after an update that follows messages moves
// ahead of the update, to those messages: PipeDream's communication between two ops is one
// exchange, too.
void gather(Program& program) {
  if (updates_by_step(program.settings.weights)) return;
  for (auto& list : program.ops) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!is_message(list[i]) || is_send(list[i].kind)) continue;
      std::size_t to = i;
      while (to > 0 &&
             (list[to - 1].kind == OpKind::update || list[to - 1].kind == OpKind::reduce_grad)) {
        --to;
      }
      if (to == i || to == 0 || !is_message(list[to - 1])) continue;
      const auto begin = list.begin();
      std::rotate(begin + static_cast<std::ptrdiff_t>(to), begin + static_cast<std::ptrdiff_t>(i),
                  begin + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
}

// The order of ops that start at the same time: what the backwards before send and receive, then,
// where updates end a step, reductions and updates, which nothing under way waits for, then the new
// weights, then what takes time.
int turn(const Op& op, Time duration, bool updates_end_a_step) {
  if (duration > Time{}) return 4;
  if (!updates_end_a_step) return 0;
  if (op.kind == OpKind::send_weights || op.kind == OpKind::receive_weights) return 3;
  if (op.kind == OpKind::update) return 2;
  return op.kind == OpKind::reduce_grad ? 1 : 0;
}

// The start of each op in an asynchronous run on unit costs; equal starts go by turn, then by task
// number. This order grows along every list and from every op to those that need it, so devices
// that keep to it never deadlock.
class Clockwork {
 public:
  using Moment = std::tuple<Time, int, std::uint32_t>;

  /// Throws what compile() throws.
  explicit Clockwork(Program program) : stages_(stage_graph(program)) {
    program.settings.messages = Messages::async;
    Costs costs = unit_costs(program);
    const TaskGraph graph = compile(program, costs);
    const TaskTimes times = sweep(graph);
    const bool by_step = updates_by_step(program.settings.weights);
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      moment_[plain(graph.op[task])] = {start_of(graph, times, task),
                                        turn(graph.op[task], graph.duration[task], by_step), task};
    }
  }

  /// For a RECV, the moment of its SEND.
  Moment of(Op op) const {
    const bool receives = lane_of(op.kind) == LaneKind::receive;
    return moment_.at(plain(receives ? other_end(stages_, op) : op));
  }

  /// Nothing for an op that another's task stands for: a member of a reduction, the second of a
  /// pair.
  std::optional<Moment> known(Op op) const {
    const auto found = moment_.find(plain(op));
    return found == moment_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  StageGraph stages_;
  std::map<Op, Moment> moment_;
};

// Sorts the messages between two compute ops into the order of that run: then the two ends of a
// link do not both send first.
void order_neighbours(Program& program, const Clockwork& clock) {
  std::vector<std::size_t> at;
  std::vector<Op> together;
  for (auto& list : program.ops) {
    for (std::size_t i = 0; i <= list.size(); ++i) {
      if (i < list.size() && is_message(list[i])) {
        at.push_back(i);
        together.push_back(list[i]);
      }
      if (i < list.size() && (lane_of(list[i].kind) != LaneKind::compute)) continue;
      std::stable_sort(together.begin(), together.end(),
                       [&](Op a, Op b) { return clock.of(a) < clock.of(b); });
      for (std::size_t k = 0; k < at.size(); ++k) list[at[k]] = together[k];
      at.clear();
      together.clear();
    }
  }
}

// By op of a list, the moment before which messages go ahead of it: no later than that of any
// compute op behind it. A copy lets all pass, and so does a reduction within a step.
std::vector<std::optional<Clockwork::Moment>> turns_of(const std::vector<Op>& list,
                                                       const Clockwork& clock, bool by_step) {
  std::vector<std::optional<Clockwork::Moment>> turns(list.size());
  std::optional<Clockwork::Moment> next;  // of compute
  for (std::size_t i = list.size(); i-- > 0;) {
    const bool computes = lane_of(list[i].kind) == LaneKind::compute;
    if (!computes && (list[i].kind != OpKind::reduce_grad || !by_step)) continue;
    turns[i] = clock.known(list[i]);
    if (turns[i] && next) turns[i] = std::min(*turns[i], *next);
    if (computes && turns[i]) next = turns[i];
  }
  return turns;
}

// Moves every message to its place in that run.
void order_all(Program& program, const Clockwork& clock) {
  for (auto& list : program.ops) {
    std::vector<Op> messages;
    std::copy_if(list.begin(), list.end(), std::back_inserter(messages), is_message);
    std::erase_if(list, is_message);
    std::stable_sort(messages.begin(), messages.end(),
                     [&](Op a, Op b) { return clock.of(a) < clock.of(b); });
    const std::vector<std::optional<Clockwork::Moment>> turns =
        turns_of(list, clock, updates_by_step(program.settings.weights));
    std::size_t next = 0;
    std::size_t unit = 0;
    list = rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
      const std::optional<Clockwork::Moment>& turn = turns[unit];
      unit += static_cast<std::size_t>(last - first);
      for (; turn && next < messages.size() && clock.of(messages[next]) < *turn; ++next) {
        out.push_back(messages[next]);
      }
      out.insert(out.end(), first, last);
    });
    list.insert(list.end(), messages.begin() + static_cast<std::ptrdiff_t>(next), messages.end());
  }
}

}  // namespace

Costs unit_costs(const Program& program) {
  Costs costs = uniform_costs(program.stages(), 1, Time{1}, Time{1}, Time{1});
  costs.network = free_network(static_cast<int>(program.devices.size()));
  costs.edges.clear();
  for (const StageEdge edge : program.edges) costs.edges.push_back({edge, Bytes{1}, Bytes{1}});
  return costs;
}

Transferred in_message_order(Program program) {
  std::optional<Clockwork> clock;
  try {
    clock.emplace(program);
  } catch (const Deadlock&) {
    return {std::move(program), ""};  // no order of messages helps
  }
  gather(program);
  order_neighbours(program, *clock);
  try {
    compile(program, unit_costs(program));
    return {std::move(program), ""};
  } catch (const Deadlock& deadlock) {
    order_all(program, *clock);
    return {std::move(program), deadlock.what()};
  }
}

}  // namespace stageline
