// "Which op needs which" written once more, by names of ops, for tests only: it shares no code with
// sim/rules.hpp.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "sim/program.hpp"

namespace stageline::test {

inline Op op(OpKind kind, int stage, std::uint32_t number, int part = 0) {
  Op made;
  made.kind = kind;
  made.stage = static_cast<std::uint16_t>(stage);
  made.microbatch = number;
  made.part = static_cast<std::uint8_t>(part & 0x7f);
  return made;
}

inline Op plain(Op op) {
  op.overlapped = 0;
  return op;
}

/// An edge of the stage graph, and how messages name it at both ends.
struct Wire {
  int from = 0;
  int to = 0;
  int among_outgoing = 0;  // the how-manieth of `from`
  int among_incoming = 0;  // of `to`
};
inline std::vector<Wire> wires_of(const Program& program) {
  std::vector<Wire> all;
  for (const StageEdge edge : program.edges) {
    Wire wire{edge.from, edge.to, 0, 0};
    for (const Wire& other : all) {
      wire.among_outgoing += other.from == wire.from ? 1 : 0;
      wire.among_incoming += other.to == wire.to ? 1 : 0;
    }
    all.push_back(wire);
  }
  return all;
}

/// The ops that an op needs by the table at the head of SCHEDULES (section 1), from all ops that
/// the program has.
class Table {
 public:
  explicit Table(const Program& program) : program_(program), wires_(wires_of(program)) {
    for (const auto& list : program.ops) {
      for (const Op one : list) ops_.insert(plain(one));
    }
  }

  bool has(Op one) const { return ops_.count(one) > 0; }
  const std::set<Op>& ops() const { return ops_; }

  std::vector<Op> needs(Op one) const {
    const int s = one.stage;
    const std::uint32_t m = one.microbatch;
    std::vector<Op> all;
    switch (one.kind) {
      case OpKind::forward:
        for (const Wire& wire : wires_) {
          if (wire.to != s) continue;
          const Op sent = op(OpKind::send_forward, wire.from, m, wire.among_outgoing);
          all.push_back(has(sent) ? sent : op(OpKind::forward, wire.from, m));
        }
        break;
      case OpKind::input_grad:
      case OpKind::backward:
        add_stash(s, m, all);
        add_output_gradient(s, m, all);
        break;
      case OpKind::weight_grad:
        add_stash(s, m, all);
        if (!program_.independent_w[one.stage] && has(op(OpKind::input_grad, s, m))) {
          add_gradient(s, m, all);
        } else {
          add_output_gradient(s, m, all);
        }
        break;
      case OpKind::recompute:
      case OpKind::offload:
      case OpKind::send_forward:
        all.push_back(op(OpKind::forward, s, m));
        break;
      case OpKind::prefetch:
        all.push_back(op(OpKind::offload, s, m));
        break;
      case OpKind::send_backward:
        add_gradient(s, m, all);
        break;
      case OpKind::update:
        if (has(op(OpKind::reduce_grad, s, m, one.part))) {
          all.push_back(op(OpKind::reduce_grad, s, m, one.part));
        } else {
          add_weight_gradients(s, m, all);
        }
        break;
      case OpKind::reduce_grad:
        add_weight_gradients(s, m, all);
        break;
      case OpKind::receive_forward:
      case OpKind::receive_backward:
        break;  // happens with its SEND
    }
    return all;
  }

 private:
  void add_stash(int s, std::uint32_t m, std::vector<Op>& all) const {
    all.push_back(op(OpKind::forward, s, m));
    for (const OpKind kind : {OpKind::recompute, OpKind::prefetch}) {
      if (has(op(kind, s, m))) all.push_back(op(kind, s, m));
    }
  }

  // dL/d(input of s)
  void add_gradient(int s, std::uint32_t m, std::vector<Op>& all) const {
    if (!has(op(OpKind::input_grad, s, m))) return all.push_back(op(OpKind::backward, s, m));
    for (int part = 0; part <= max_parts; ++part) {
      if (has(op(OpKind::input_grad, s, m, part))) {
        all.push_back(op(OpKind::input_grad, s, m, part));
      }
    }
  }

  void add_output_gradient(int s, std::uint32_t m, std::vector<Op>& all) const {
    for (const Wire& wire : wires_) {
      if (wire.from != s) continue;
      const Op sent = op(OpKind::send_backward, wire.to, m, wire.among_incoming);
      if (has(sent)) {
        all.push_back(sent);
      } else {
        add_gradient(wire.to, m, all);
      }
    }
  }

  void add_weight_gradients(int s, std::uint32_t k, std::vector<Op>& all) const {
    const bool by_step =
        program_.weights == WeightRule::flush || program_.weights == WeightRule::double_buffer;
    const auto replicas = program_.placement.stage[static_cast<std::size_t>(s)].replicas.size();
    const std::size_t size = by_step ? static_cast<std::size_t>(program_.microbatches) : replicas;
    const std::size_t total = static_cast<std::size_t>(program_.microbatches * program_.steps);
    for (std::size_t m = k * size; m < std::min((k + 1) * size, total); ++m) {
      const auto number = static_cast<std::uint32_t>(m);
      const bool whole = has(op(OpKind::backward, s, number));
      all.push_back(op(whole ? OpKind::backward : OpKind::weight_grad, s, number));
    }
  }

  const Program& program_;
  std::vector<Wire> wires_;
  std::set<Op> ops_;
};

}  // namespace stageline::test
