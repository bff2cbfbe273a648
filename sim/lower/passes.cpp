#include "sim/lower/passes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/engine.hpp"
#include "sim/errors.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"

namespace stageline {
namespace {

// By stage, whether the program has an op of that kind.
std::vector<bool> stages_with(const Program& program, OpKind kind) {
  std::vector<bool> with(static_cast<std::size_t>(program.stages()));
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (op.kind == kind) with[op.stage] = true;
    }
  }
  return with;
}

bool is_message(Op op) { return cargo_of(op.kind).has_value(); }

bool has_messages(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(), [](const std::vector<Op>& list) {
    return std::any_of(list.begin(), list.end(), is_message);
  });
}

bool makes_weight_gradient(OpKind kind) {
  return kind == OpKind::weight_grad || kind == OpKind::backward;
}

Op update_op(int stage, int number, int replica) {
  Op op;
  op.kind = OpKind::update;
  op.stage = static_cast<std::uint16_t>(stage);
  op.microbatch = static_cast<std::uint32_t>(number);
  op.part = static_cast<std::uint8_t>(replica & 0x7f);
  return op;
}

// Copies `list` in units that must stay together (an overlapped pair is one), handing each unit to
// `around(first, last, out)`.
template <class Around>
std::vector<Op> rebuilt(const std::vector<Op>& list, Around&& around) {
  std::vector<Op> out;
  out.reserve(list.size() + list.size() / 2);
  for (std::size_t i = 0; i < list.size();) {
    const std::size_t last = list[i].overlapped && i + 1 < list.size() ? i + 1 : i;
    around(list.data() + i, list.data() + last + 1, out);
    i = last + 1;
  }
  return out;
}

void update_one_device(Program& program, int device, const std::vector<bool>& wanted) {
  struct Stage {
    int replica = -1;
    int group = 1;             // micro-batches an update
    std::vector<int> missing;  // by update, gradients of this device not yet seen; -1: it is placed
    std::size_t next = 0;      // others() has seen to all updates before this one
  };
  std::vector<Stage> stages(static_cast<std::size_t>(program.stages()));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StagePlace& place = program.placement.stage[s];
    const auto& replicas = place.weight_grad.empty() ? place.replicas : place.weight_grad;
    const auto here = std::find(replicas.begin(), replicas.end(), device);
    if (!wanted[s] || here == replicas.end()) continue;
    stages[s].replica = static_cast<int>(here - replicas.begin());
    stages[s].group = microbatches_per_update(program, static_cast<int>(s));
    stages[s].missing.resize(static_cast<std::size_t>(updates(program, static_cast<int>(s))));
  }
  std::vector<Op>& list = program.ops[static_cast<std::size_t>(device)];
  const bool by_step = program.weights == WeightRule::flush;
  std::vector<int> of_step(static_cast<std::size_t>(program.steps));  // gradients, all stages
  for (const Op op : list) {
    Stage& stage = stages[op.stage];
    if (stage.replica < 0 || !makes_weight_gradient(op.kind)) continue;
    const std::uint32_t k = op.microbatch / static_cast<std::uint32_t>(stage.group);
    ++stage.missing[k];
    if (by_step) ++of_step[k];
  }
  // An update that none of this device's gradients goes into (of a round that is not full) still
  // happens here, since replicas stay alike: before the first work of a later step, or at the end.
  const auto others = [&](std::size_t s, std::size_t before, std::vector<Op>& out) {
    Stage& stage = stages[s];
    for (; stage.next < before && stage.missing[stage.next] <= 0; ++stage.next) {
      if (stage.missing[stage.next] < 0) continue;
      out.push_back(update_op(static_cast<int>(s), static_cast<int>(stage.next), stage.replica));
      stage.missing[stage.next] = -1;
    }
  };
  list = rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
    for (const Op* op = first; op != last; ++op) {
      const Stage& stage = stages[op->stage];
      if (stage.replica < 0 || !counts_microbatches(op->kind)) continue;
      if (program.weights != WeightRule::flush && !makes_weight_gradient(op->kind)) continue;
      others(op->stage, op->microbatch / static_cast<std::uint32_t>(stage.group), out);
    }
    out.insert(out.end(), first, last);
    for (; first != last; ++first) {
      Stage& stage = stages[first->stage];
      if (stage.replica < 0 || !makes_weight_gradient(first->kind)) continue;
      const std::uint32_t k = first->microbatch / static_cast<std::uint32_t>(stage.group);
      --stage.missing[k];
      if (by_step ? --of_step[k] > 0 : stage.missing[k] > 0) continue;
      // Where weights are flushed, all stages of the device behind the last gradient of the step,
      // the deepest first: in the middle of the work of others an update would wait for the
      // reduction between replicas, and those perhaps for one another.
      const std::size_t least = by_step ? 0 : first->stage;
      for (std::size_t s = by_step ? stages.size() : first->stage + std::size_t{1}; s-- > least;) {
        if (stages[s].replica < 0 || stages[s].missing[k] != 0) continue;
        out.push_back(update_op(static_cast<int>(s), static_cast<int>(k), stages[s].replica));
        stages[s].missing[k] = -1;
      }
    }
  });
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].replica >= 0) others(s, stages[s].missing.size(), list);
  }
}

}  // namespace

Program add_updates(Program program) {
  std::vector<bool> wanted = stages_with(program, OpKind::update);
  wanted.flip();
  for (std::size_t device = 0; device < program.ops.size(); ++device) {
    update_one_device(program, static_cast<int>(device), wanted);
  }
  return program;
}

Program add_reductions(Program program) {
  std::vector<bool> wanted = stages_with(program, OpKind::reduce_grad);
  for (std::size_t s = 0; s < wanted.size(); ++s) {
    wanted[s] = program.placement.stage[s].replicas.size() > 1 && !wanted[s];
  }
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return program;
  for (auto& list : program.ops) {
    list = rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
      if (first->kind == OpKind::update && wanted[first->stage]) {
        Op reduce = *first;
        reduce.kind = OpKind::reduce_grad;
        out.push_back(reduce);
      }
      out.insert(out.end(), first, last);
    });
  }
  return program;
}

namespace {

// SEND right behind the producer, RECV right before the reader.
Program in_usual_order(Program program) {
  const StageGraph graph = stage_graph(program);
  const InputGrads input_grads(program);
  const auto messages = [&](Op op, Cargo cargo, bool sends, int device, std::vector<Op>& out) {
    messages_of(graph, program, op, cargo, sends, device,
                [&](Op message) { out.push_back(message); });
  };
  const std::vector<bool> offloads = stages_with(program, OpKind::offload);
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    const int device = static_cast<int>(d);
    // What has been received here, by stage and micro-batch; of weights, how many updates.
    std::set<std::pair<int, std::uint32_t>> stashes;
    std::set<std::pair<int, std::uint32_t>> gradients;
    std::vector<std::uint32_t> updates_received(program.placement.stage.size());
    program.ops[d] =
        rebuilt(program.ops[d], [&](const Op* first, const Op* last, std::vector<Op>& out) {
          for (const Op* op = first; op != last; ++op) {
            if (program.weights_transfer) {
              std::uint32_t& next = updates_received[op->stage];
              const auto group =
                  static_cast<std::uint32_t>(microbatches_per_update(program, op->stage));
              for (; counts_microbatches(op->kind) && next < op->microbatch / group; ++next) {
                messages(update_op(op->stage, static_cast<int>(next), 0), Cargo::weights, false,
                         device, out);
              }
            }
            if (op->kind == OpKind::forward) messages(*op, Cargo::activation, false, device, out);
            const StagePlace& place = program.placement.stage[op->stage];
            const bool backward = op->kind == OpKind::backward || op->kind == OpKind::input_grad ||
                                  op->kind == OpKind::weight_grad;
            if (!backward) continue;
            if (!place.apart()) {
              if (input_grads.takes_output_gradient(*op)) {
                messages(*op, Cargo::gradient, false, device, out);
              }
              continue;
            }
            const std::pair<int, std::uint32_t> key{op->stage, op->microbatch};
            if (!offloads[op->stage] && stashes.insert(key).second) {
              messages(*op, Cargo::stash, false, device, out);
            }
            const bool reads_gradient =
                input_grads.takes_output_gradient(*op) ||
                (op->kind == OpKind::weight_grad && program.independent_w[op->stage]);
            if (reads_gradient && gradients.insert(key).second) {
              messages(*op, Cargo::gradient, false, device, out);
            }
          }
          out.insert(out.end(), first, last);
          for (const Op* op = first; op != last; ++op) {
            if (op->kind == OpKind::forward) {
              messages(*op, Cargo::activation, true, device, out);
              if (!offloads[op->stage]) messages(*op, Cargo::stash, true, device, out);
            }
            if (op->kind == OpKind::backward || op->kind == OpKind::input_grad) {
              messages(*op, Cargo::gradient, true, device, out);
            }
            if (op->kind == OpKind::update && program.weights_transfer) {
              messages(*op, Cargo::weights, true, device, out);
            }
          }
        });
    // Nobody in the program reads the last weights, but the next one will.
    for (int s = 0; program.weights_transfer && s < program.stages(); ++s) {
      for (int k = static_cast<int>(updates_received[static_cast<std::size_t>(s)]);
           k < updates(program, s); ++k) {
        messages(update_op(s, k, 0), Cargo::weights, false, device, program.ops[d]);
      }
    }
  }
  return program;
}

// What one device sends to another is received in that order: a RECV that stands behind the RECV of
// a later message goes ahead of that one. Nobody waits for a RECV that is posted ahead, so where
// messages are async this changes no time; and a channel that matches them by their order alone
// delivers each where it belongs.
Program received_as_sent(Program program) {
  const StageGraph graph = stage_graph(program);
  const auto ends = [&](Op message) {
    const Wire& way = wire(graph, *cargo_of(message.kind), wire_of(graph, message));
    return ends_of(program.placement, way, message.microbatch);
  };
  struct Channel {
    std::vector<Op> receives;  // in the order of their SENDs
    std::size_t next = 0;
    std::set<Op> ahead;  // that have been placed before their turn in the list came
  };
  std::vector<std::map<int, Channel>> channels(program.ops.size());  // by receiver and sender
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (!is_message(op) || !is_send(op.kind)) continue;
      const Ends way = ends(op);
      channels[static_cast<std::size_t>(way.to)][way.from].receives.push_back(other_end(graph, op));
    }
  }
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    program.ops[d] =
        rebuilt(program.ops[d], [&](const Op* first, const Op* last, std::vector<Op>& out) {
          if (!is_message(*first) || is_send(first->kind)) {
            out.insert(out.end(), first, last);
            return;
          }
          Channel& channel = channels[d].at(ends(*first).from);
          if (channel.ahead.erase(*first) > 0) return;
          while (channel.receives[channel.next] != *first) {
            channel.ahead.insert(channel.receives[channel.next]);
            out.push_back(channel.receives[channel.next++]);
          }
          out.push_back(channel.receives[channel.next++]);
        });
  }
  return program;
}

// Where every backward has its update, a RECV behind one that stands behind messages goes ahead of
// it, to them: what PipeDream does between two ops is one exchange, too.
void gather(Program& program) {
  if (updates_by_step(program.weights)) return;
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

// When each op of an asynchronous run on unit costs starts; of equals, what takes no time first,
// then by task number. Along any list and from any op to one that needs it this grows, so devices
// that keep to it never wait for each other in a circle.
class Clockwork {
 public:
  using Moment = std::tuple<Time, bool, std::uint32_t>;

  /// Throws what compile() throws.
  explicit Clockwork(Program program) : stages_(stage_graph(program)) {
    program.messages = Messages::async;
    Costs costs = unit_costs(program);
    const TaskGraph graph = compile(program, costs);
    const TaskTimes times = sweep(graph);
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      moment_[plain(graph.op[task])] = {start_of(graph, times, task), graph.duration[task] > Time{},
                                        task};
    }
  }

  /// Of a RECV, that of its SEND.
  Moment of(Op op) const {
    const bool receives = lane_of(op.kind) == LaneKind::receive;
    return moment_.at(plain(receives ? other_end(stages_, op) : op));
  }

 private:
  StageGraph stages_;
  std::map<Op, Moment> moment_;
};

// Messages that no computing parts, each device's in the order of that run: then the two ends of a
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

// All messages where they stand in that run.
void order_all(Program& program, const Clockwork& clock) {
  for (auto& list : program.ops) {
    std::vector<Op> messages;
    std::copy_if(list.begin(), list.end(), std::back_inserter(messages), is_message);
    std::erase_if(list, is_message);
    std::stable_sort(messages.begin(), messages.end(),
                     [&](Op a, Op b) { return clock.of(a) < clock.of(b); });
    std::size_t next = 0;
    list = rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
      // Copies and reductions are in no message's way.
      const bool computes = lane_of(first->kind) == LaneKind::compute;
      for (; computes && next < messages.size() && clock.of(messages[next]) < clock.of(*first);
           ++next) {
        out.push_back(messages[next]);
      }
      out.insert(out.end(), first, last);
    });
    list.insert(list.end(), messages.begin() + static_cast<std::ptrdiff_t>(next), messages.end());
  }
}

}  // namespace

Costs unit_costs(const Program& program) {
  Costs costs = uniform_costs(program.stages(), static_cast<int>(program.devices.size()), Time{1},
                              Time{1}, Time{1});
  costs.edges.clear();
  for (const StageEdge edge : program.edges) costs.edges.push_back({edge, Bytes{1}, Bytes{1}});
  return costs;
}

Transferred with_transfers(Program program) {
  if (has_messages(program)) return {std::move(program), ""};
  program = in_usual_order(std::move(program));
  if (program.messages == Messages::async) return {received_as_sent(std::move(program)), ""};
  std::optional<Clockwork> clock;
  try {
    clock.emplace(program);
  } catch (const Deadlock&) {
    return {std::move(program), ""};  // it cannot finish in any order of messages
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

Program add_transfers(Program program) { return with_transfers(std::move(program)).program; }

Program merge_backward(Program program) {
  // An overlapped pair is as it is: its second half is no I to grow.
  const auto ends_pair = [](const std::vector<Op>& ops) {
    return ops.size() > 1 && ops[ops.size() - 2].overlapped;
  };
  for (auto& list : program.ops) {
    std::vector<Op> merged;
    for (const Op op : list) {
      const bool joins = op.kind == OpKind::weight_grad && !merged.empty() &&
                         merged.back().kind == OpKind::input_grad && merged.back().part == 0 &&
                         !merged.back().overlapped && !op.overlapped && !ends_pair(merged) &&
                         merged.back().stage == op.stage &&
                         merged.back().microbatch == op.microbatch;
      if (joins) {
        merged.back().kind = OpKind::backward;
      } else {
        merged.push_back(op);
      }
    }
    list = std::move(merged);
  }
  return program;
}

Program complete(Program program, const Costs& costs, std::string* reordered) {
  program = add_reductions(add_updates(std::move(program)));
  const auto& places = program.placement.stage;
  // A stage with its roles apart has its messages written out even where they cost nothing.
  // So has one whose messages block: whoever sends waits for the other, however fast the link is.
  if (program.messages != Messages::async ||
      std::any_of(places.begin(), places.end(), [](const StagePlace& p) { return p.apart(); })) {
    Transferred done = with_transfers(std::move(program));
    if (reordered != nullptr) *reordered = std::move(done.deadlock);
    return std::move(done.program);
  }
  for (const StageEdge edge : program.edges) {
    for (const int from : places[edge.from].replicas) {
      for (const int to : places[edge.to].replicas) {
        const bool known = from < costs.network.devices && to < costs.network.devices;
        if (known && (!costs.network.between(from, to).is_free() ||
                      !costs.network.between(to, from).is_free())) {
          return add_transfers(std::move(program));
        }
      }
    }
  }
  return program;
}

}  // namespace stageline
