// Passes that write transfers: SEND after each producer, RECV before each reader.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/lower/message_need.hpp"
#include "sim/lower/message_order.hpp"
#include "sim/lower/passes.hpp"
#include "sim/lower/rewriting.hpp"
#include "sim/rules.hpp"

namespace stageline {
namespace {

// Writes the messages of a program in the usual order: SEND right after the producer, RECV right
// before the reader.
class UsualOrder {
 public:
  explicit UsualOrder(const Program& program)
      : program_(program),
        graph_(stage_graph(program)),
        input_grads_(program),
        offloads_(stages_with(program, OpKind::offload)) {}

  std::vector<Op> with_messages(int device) {
    device_ = device;
    stashes_.clear();
    gradients_.clear();
    updates_received_.assign(program_.placement.stage.size(), 0);
    std::vector<Op> list = rebuilt(nth(program_.ops, device),
                                   [&](const Op* first, const Op* last, std::vector<Op>& out) {
                                     for (const Op* op = first; op != last; ++op)
                                       receives_before(*op, out);
                                     out.insert(out.end(), first, last);
                                     for (const Op* op = first; op != last; ++op)
                                       sends_after(*op, out);
                                   });
    // No op of the program reads the last weights, but the next run will.
    for (int s = 0; program_.settings.weights_transfer && s < program_.stages(); ++s) {
      receive_updates(s, static_cast<std::uint32_t>(updates(program_, s)), list);
    }
    return list;
  }

 private:
  void messages(Op op, Cargo cargo, bool sends, std::vector<Op>& out) const {
    messages_of(graph_, program_, op, cargo, sends, device_,
                [&](Op message) { out.push_back(message); });
  }

  // The weights of all updates before that one, unless they have been received.
  void receive_updates(int stage, std::uint32_t before, std::vector<Op>& out) {
    std::uint32_t& next = nth(updates_received_, stage);
    for (; next < before; ++next) {
      messages(op_of(OpKind::update, stage, next), Cargo::weights, false, out);
    }
  }

  void receives_before(Op op, std::vector<Op>& out) {
    if (program_.settings.weights_transfer && counts_microbatches(op.kind)) {
      const auto group = static_cast<std::uint32_t>(microbatches_per_update(program_, op.stage));
      receive_updates(op.stage, op.microbatch / group, out);
    }
    if (op.kind == OpKind::forward) messages(op, Cargo::activation, false, out);
    const bool rebuilds = op.kind == OpKind::recompute;
    if (!rebuilds && class_of(op.kind) != OpClass::backward) return;
    const bool apart = program_.placement.stage[op.stage].apart();
    const std::pair<int, std::uint32_t> key{op.stage, op.microbatch};
    if (apart && !offloads_[op.stage] && stashes_.insert(key).second) {
      messages(op, Cargo::stash, false, out);
    }
    if (!reads_output_gradient(op)) return;
    // A late R has received it already; one behind its backward must not receive it again. Nor must
    // the second reader on a device.
    const bool late = program_.settings.recompute == RecomputeStart::late;
    if ((apart || late) && !gradients_.insert(key).second) return;
    messages(op, Cargo::gradient, false, out);
  }

  bool reads_output_gradient(Op op) const {
    if (op.kind == OpKind::recompute) return program_.settings.recompute == RecomputeStart::late;
    if (input_grads_.takes_output_gradient(op)) return true;
    return op.kind == OpKind::weight_grad && program_.placement.stage[op.stage].apart() &&
           program_.independent_w[op.stage];
  }

  void sends_after(Op op, std::vector<Op>& out) const {
    switch (class_of(op.kind)) {
      case OpClass::forward:
        messages(op, Cargo::activation, true, out);
        if (!offloads_[op.stage]) messages(op, Cargo::stash, true, out);
        return;
      case OpClass::backward:
        if (op.kind != OpKind::weight_grad) messages(op, Cargo::gradient, true, out);
        return;
      case OpClass::update:
        messages(op, Cargo::weights, true, out);
        return;
      case OpClass::recompute:
      case OpClass::reduction:
      case OpClass::message:
      case OpClass::copy:
        return;
    }
  }

  const Program& program_;
  StageGraph graph_;
  InputGrads input_grads_;
  std::vector<bool> offloads_;  // by stage
  // State of the device whose list is written:
  int device_ = 0;
  std::set<std::pair<int, std::uint32_t>> stashes_;    // received: stage, micro-batch
  std::set<std::pair<int, std::uint32_t>> gradients_;  // received: stage, micro-batch
  std::vector<std::uint32_t> updates_received_;        // by stage: their number
};

Program in_usual_order(Program program) {
  UsualOrder order(program);
  std::vector<std::vector<Op>> ops;
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    ops.push_back(order.with_messages(static_cast<int>(d)));
  }
  program.ops = std::move(ops);
  return program;
}

// The messages from one device to another are received in the order in which they are sent: a RECV
// moves ahead of the RECVs of later messages. RECVs are posted ahead, so where messages are async
// this changes no time; and a channel that matches messages by their order alone delivers each to
// its reader.
Program received_as_sent(Program program) {
  const StageGraph graph = stage_graph(program);
  const auto ends = [&](Op message) {
    const Wire& way = wire(graph, *cargo_of(message.kind), wire_of(graph, message));
    return ends_of(program.placement, way, message.microbatch);
  };
  struct Channel {
    std::vector<Op> receives;  // in the order of their SENDs
    std::size_t next = 0;
    std::set<Op> ahead;  // RECVs that are written already, before their place in the old list
  };
  std::vector<std::map<int, Channel>> channels(program.ops.size());  // by receiver and sender
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (!is_send(op.kind)) continue;
      const Ends way = ends(op);
      nth(channels, way.to)[way.from].receives.push_back(other_end(graph, op));
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

bool has_messages(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(), [](const std::vector<Op>& list) {
    return std::any_of(list.begin(), list.end(), is_message);
  });
}

// Whether a message between the two devices takes any time.
bool is_costly(const Network& network, int one, int other) {
  if (one >= network.devices || other >= network.devices) return false;
  return !network.between(one, other).is_free() || !network.between(other, one).is_free();
}

bool has_costly_edges(const Program& program, const Network& network) {
  const auto& places = program.placement.stage;
  for (const StageEdge edge : program.edges) {
    for (const int from : places[edge.from].replicas) {
      for (const int to : places[edge.to].replicas) {
        if (is_costly(network, from, to)) return true;
      }
    }
  }
  return false;
}

}  // namespace

Transferred with_transfers(Program program) {
  if (has_messages(program)) return {std::move(program), ""};
  program = in_usual_order(std::move(program));
  if (program.settings.messages == Messages::async)
    return {received_as_sent(std::move(program)), ""};
  return in_message_order(std::move(program));
}

Program add_transfers(Program program) { return with_transfers(std::move(program)).program; }

bool needs_messages(const Program& program, const Network& network) {
  const auto& places = program.placement.stage;
  // Split roles exchange messages even if those are free. So do blocking messages: their sender
  // waits for the receiver, however fast the link is.
  return program.settings.messages != Messages::async ||
         std::any_of(places.begin(), places.end(), [](const StagePlace& p) { return p.apart(); }) ||
         has_costly_edges(program, network);
}

Program complete(Program program, const Costs& costs, std::string* reordered) {
  program = add_reductions(add_updates(std::move(program)), without_reductions(costs));
  if (!needs_messages(program, costs.network)) return program;
  Transferred done = with_transfers(std::move(program));
  if (reordered != nullptr) *reordered = std::move(done.deadlock);
  return std::move(done.program);
}

}  // namespace stageline
