// The rules: which op needs which. Validation, lowering and list scheduling all use them.
//
//      F(s-1,m) ──a──► F(s,m) ──a──► F(s+1,m)        a  activation: over a wire (SEND_F, RECV_F)
//                        │ stash                        where the stages live on two devices
//                        ▼ (+)
//      I(s-1,m) ◄──g── I(s,m) ◄──g── I(s+1,m)        g  gradient of the stage's input; B makes it
//                        │              │               and w at once; SEND_B, RECV_B
//                        ▼ (*)          │
//                      W(s,m) ◄────g────┘            (*) not where the stage is independent_w
//                        │ w
//                        ▼
//                      U(s,k)                        waits for the w of all its micro-batches,
//                                                    between replicas through REDUCE_GRAD(s,k)
//      R(s,m), when there is one, comes between F(s,m) and its I, W or B (under recompute: late it
//      waits for their g, too): what it makes again, I and W or B read, so it comes before the
//      first of them, and it is freed as a stash of F's is. So does OFFLOAD(s,m) ► PREFETCH(s,m),
//      before R(s,m). (+) Where I, W or B are on another device than F, the stash comes by
//      SEND_STASH, RECV_STASH or by way of the host, and U(s,k)'s weights go to the other devices
//      that read them by SEND_WEIGHTS, RECV_WEIGHTS. What takes either way to be rebuilt by R is
//      the stage's input alone; R and PREFETCH are then on each device that reads the stash, a part
//      on each.
//
// What the program's settings add, flow control without which a free-running stage would run away:
//      delay d     F(s,m) ◄── U(s,m-d-1);  with one copy of the weights also U(s,m) ◄── F(s,m+d)
//      window w    F(s,m) ◄── backward of (s,m-w)
//      copies      F(s,m) ◄── OFFLOAD(s,m-b), PREFETCH(s,m) ◄── backward of (s,m-b), b buffers,
//                  counted among the micro-batches of one replica; where they are issued,
//                  PREFETCH(s,m) ◄── the compute op before it in its list
//      chunks c    F(s,n) ◄── F(s,n-1), and
//                  backward of (s,n) ◄── backward of (s,n+1), where these belong to the same
//                  sequence of c chunks (attention looks back)
//      lockstep    what is done in cycle n ◄── all that is done in cycle n-1
//
// As a table: sim/README.md. The needs are those of PyTorch and Megatron, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "sim/op.hpp"
#include "sim/products.hpp"
#include "sim/program.hpp"
#include "sim/stash_readers.hpp"
#include "sim/wires.hpp"

namespace stageline {

/// In lockstep, cycle n does F(s,m) with m + s = n and the backward with m + 2(S-1) - s = n.
inline std::int64_t cycle_of(const Program& program, Op op) {
  const std::int64_t last = program.stages() - 1;
  const std::int64_t m = op.microbatch;
  return op.kind == OpKind::forward ? m + op.stage : m + 2 * last - op.stage;
}

/// Calls made(product, index, number, part) for what the op makes. A RECV makes nothing of its own:
/// it is one task with its SEND.
template <class Made>
void makes(const StageGraph& graph, Op op, Made&& made) {
  const int stage = op.stage;
  switch (op.kind) {
    case OpKind::forward:
      return made(Product::activation, stage, op.microbatch, 0);
    case OpKind::input_grad:
      return made(Product::gradient, stage, op.microbatch, static_cast<int>(op.part));
    case OpKind::weight_grad:
      return made(Product::weight_gradient, stage, op.microbatch, 0);
    case OpKind::backward:
      made(Product::gradient, stage, op.microbatch, 0);
      return made(Product::weight_gradient, stage, op.microbatch, 0);
    case OpKind::recompute:
      return made(Product::rebuilt, stage, op.microbatch, static_cast<int>(op.part));
    case OpKind::offload:
      return made(Product::offloaded, stage, op.microbatch, 0);
    case OpKind::prefetch:
      return made(Product::prefetched, stage, op.microbatch, static_cast<int>(op.part));
    case OpKind::send_forward:
    case OpKind::send_backward:
    case OpKind::send_stash:
    case OpKind::send_weights:
      return made(sent(*cargo_of(op.kind)), wire_of(graph, op), op.microbatch, 0);
    case OpKind::reduce_grad:
      return made(Product::reduced, stage, op.microbatch, static_cast<int>(op.part));
    case OpKind::update:
      if (!graph.updates_are_awaited) return;
      return made(Product::updated, stage, op.microbatch, static_cast<int>(op.part));
    case OpKind::receive_forward:
    case OpKind::receive_backward:
    case OpKind::receive_stash:
    case OpKind::receive_weights:
      return;
  }
}

/// What one op needs, by the rules and the settings of the program. `exists(product, index, number,
/// part)` tells whether some op of the program makes it, `need(product, index, number, part)` takes
/// what is needed. A template, since list schedulers and checks ask it for every op.
template <class Exists, class Need>
class Needs {
 public:
  Needs(const Program& program, const StageGraph& graph, Op op, Exists& exists, Need& need)
      : program_(program),
        graph_(graph),
        op_(op),
        stage_(op.stage),
        m_(op.microbatch),
        place_(program.placement.stage[op.stage]),
        apart_(place_.apart()),
        here_(apart_ ? device_of(graph, program.placement, op) : -1),
        exists_(exists),
        need_(need) {}

  void find() {
    switch (op_.kind) {
      case OpKind::forward:
        return forward();
      case OpKind::input_grad:
      case OpKind::backward:
        stash();
        output_gradient();
        if (apart_ && program_.settings.weights == WeightRule::stash) delayed_weights();
        later_chunk();
        return cycle_before();
      case OpKind::weight_grad:
        stash();
        if (!program_.independent_w[op_.stage] && exists_(Product::gradient, stage_, m_, 0)) {
          gradient_of(stage_);
        } else {
          output_gradient();
          later_chunk();
        }
        return cycle_before();
      case OpKind::recompute:
        left_by_forward();
        if (program_.settings.recompute == RecomputeStart::late) output_gradient();
        if (apart_ && program_.settings.weights == WeightRule::stash) delayed_weights();
        return;
      case OpKind::offload:
      case OpKind::send_forward:
      case OpKind::send_stash:
        return need_(Product::activation, stage_, m_, 0);
      case OpKind::prefetch:
        need_(Product::offloaded, stage_, m_, 0);
        if (!graph_.issuer.empty()) issuer();
        if (buffer_before()) backward_of(*buffer_before());
        return;
      case OpKind::update:
        return update();
      case OpKind::reduce_grad:
        return all_weight_gradients();
      case OpKind::send_backward:
        if (!apart_) return gradient_of(stage_);
        return need_(Product::gradient, stage_, m_,
                     wire(graph_, Cargo::gradient, wire_of(graph_, op_)).part);
      case OpKind::send_weights:
        return need_(Product::updated, stage_, m_, 0);
      case OpKind::receive_forward:
      case OpKind::receive_backward:
      case OpKind::receive_stash:
      case OpKind::receive_weights:
        return need_(sent(*cargo_of(op_.kind)), wire_of(graph_, op_), m_, 0);
    }
  }

 private:
  void forward() {
    for (const int edge : graph_.in[op_.stage]) {
      if (exists_(Product::sent_activation, edge, m_, 0)) {
        need_(Product::sent_activation, edge, m_, 0);
      } else {
        need_(Product::activation, graph_.edges[static_cast<std::size_t>(edge)].from, m_, 0);
      }
    }
    delayed_weights();
    const std::vector<int>& window = program_.settings.window;
    if (!window.empty() && window[op_.stage] > 0 &&
        m_ >= static_cast<std::uint32_t>(window[op_.stage])) {
      backward_of(m_ - static_cast<std::uint32_t>(window[op_.stage]));
    }
    if (buffer_before()) need_if(Product::offloaded, stage_, *buffer_before(), 0);
    earlier_chunk();
    cycle_before();
  }

  void update() {
    if (exists_(Product::reduced, stage_, m_, op_.part)) {
      need_(Product::reduced, stage_, m_, static_cast<int>(op_.part));
    } else {
      all_weight_gradients();
    }
    const std::vector<int>& delay = program_.settings.delay;
    if (delay.empty() || delay[op_.stage] < 0 || program_.settings.weights != WeightRule::latest) {
      return;
    }
    const std::uint32_t reader = m_ + static_cast<std::uint32_t>(delay[op_.stage]);
    if (reader < program_.total_microbatches()) need_(Product::activation, stage_, reader, 0);
  }

  void need_if(Product product, int index, std::uint32_t number, int part) {
    if (exists_(product, index, number, part)) need_(product, index, number, part);
  }

  // All parts of it that exist, and at least part 0.
  void gradient_of(int stage) {
    need_(Product::gradient, stage, m_, 0);
    for (int part = 1; part <= max_parts && exists_(Product::gradient, stage, m_, part); ++part) {
      need_(Product::gradient, stage, m_, part);
    }
  }

  // By the wire of that cargo that reaches this device, if the program has the message.
  bool arrives(Cargo cargo, std::uint32_t number) {
    for (const int w : graph_.receives[static_cast<std::size_t>(cargo)][op_.stage]) {
      if (wire(graph_, cargo, w).to != here_ || !exists_(sent(cargo), w, number, 0)) continue;
      need_(sent(cargo), w, number, 0);
      return true;
    }
    return false;
  }

  // The stash, or what R makes it from: where F is, by message, or back from the host.
  void left_by_forward() {
    if (apart_) {
      const int reader = stash_reader(place_, here_);
      if (exists_(Product::prefetched, stage_, m_, reader)) {
        return need_(Product::prefetched, stage_, m_, reader);
      }
      if (here_ != place_.replicas[0] && arrives(Cargo::stash, m_)) return;
      return need_(Product::activation, stage_, m_, 0);
    }
    need_(Product::activation, stage_, m_, 0);
    need_if(Product::prefetched, stage_, m_, 0);
  }

  void stash() {
    left_by_forward();
    need_if(Product::rebuilt, stage_, m_, stash_reader(place_, here_));
  }

  void output_gradient() {
    for (const int edge : graph_.out[op_.stage]) {
      const int to = graph_.edges[static_cast<std::size_t>(edge)].to;
      // Usually one wire; with split roles one from each part of the next stage's I to each reader.
      bool over_a_wire = false;
      for (const int w : graph_.receives[static_cast<std::size_t>(Cargo::gradient)][op_.stage]) {
        const Wire& way = wire(graph_, Cargo::gradient, w);
        if (way.edge != edge || (apart_ && way.to != here_)) continue;
        if (exists_(Product::sent_gradient, w, m_, 0)) {
          need_(Product::sent_gradient, w, m_, 0);
        } else {
          need_(Product::gradient, to, m_, way.part);
        }
        over_a_wire = true;
      }
      if (!over_a_wire) gradient_of(to);
    }
  }

  // What the compute op before a PREFETCH makes.
  void issuer() {
    const std::optional<Op> issuer = issuer_of(graph_, place_, op_);
    if (!issuer) return;
    makes(graph_, *issuer, [&](Product product, int index, std::uint32_t number, int part) {
      need_(product, index, number, part);
    });
  }

  void all_weight_gradients() {
    const auto size = static_cast<std::uint32_t>(microbatches_per_update(program_, stage_));
    const std::uint32_t last = std::min((m_ + 1) * size, program_.total_microbatches());
    for (std::uint32_t i = m_ * size; i < last; ++i) need_(Product::weight_gradient, stage_, i, 0);
  }

  void backward_of(std::uint32_t number) {
    need_if(Product::weight_gradient, stage_, number, 0);
    for (int part = 0; part < place_.parts(); ++part) {
      need_if(Product::gradient, stage_, number, part);
    }
  }

  // The micro-batch whose copy used this one's buffer last, if there was one: of the same replica.
  std::optional<std::uint32_t> buffer_before() const {
    const auto back = static_cast<std::uint32_t>(copy_buffers(program_.settings.copies)) *
                      static_cast<std::uint32_t>(place_.replicas.size());
    if (back == 0 || m_ < back) return std::nullopt;
    return m_ - back;
  }

  // The weights that F of this micro-batch waits for, and with it every op that reads the same
  // weights on another device.
  void delayed_weights() {
    const std::vector<int>& delays = program_.settings.delay;
    if (delays.empty() || delays[op_.stage] < 0) return;
    const auto delay = static_cast<std::uint32_t>(delays[op_.stage]);
    if (m_ <= delay || (apart_ && arrives(Cargo::weights, m_ - delay - 1))) return;
    need_if(Product::updated, stage_, m_ - delay - 1, 0);
  }

  // Attention of a chunk reads the chunks before it; the backward goes the other way.
  void earlier_chunk() {
    const auto chunks = static_cast<std::uint32_t>(program_.settings.sequence_chunks);
    if (m_ % chunks != 0) need_(Product::activation, stage_, m_ - 1, 0);
  }
  void later_chunk() {
    const auto chunks = static_cast<std::uint32_t>(program_.settings.sequence_chunks);
    if (m_ % chunks + 1 == chunks) return;
    const bool input = exists_(Product::gradient, stage_, m_ + 1, 0);
    need_(input ? Product::gradient : Product::weight_gradient, stage_, m_ + 1, 0);
  }

  // In lockstep, all ops of the cycle before.
  void cycle_before() {
    if (program_.settings.clock != Clock::lockstep) return;
    const std::int64_t before = cycle_of(program_, op_) - 1;
    const std::int64_t last = program_.stages() - 1;
    const auto is_number = [&](std::int64_t number) {
      return number >= 0 && number < std::int64_t{program_.total_microbatches()};
    };
    for (int s = 0; s <= last; ++s) {
      if (const std::int64_t f = before - s; is_number(f)) {
        need_(Product::activation, s, static_cast<std::uint32_t>(f), 0);
      }
      if (const std::int64_t b = before - 2 * last + s; is_number(b)) {
        need_(Product::weight_gradient, s, static_cast<std::uint32_t>(b), 0);
        need_if(Product::updated, s, static_cast<std::uint32_t>(b), 0);
      }
    }
  }

  const Program& program_;
  const StageGraph& graph_;
  const Op op_;
  const int stage_;
  const std::uint32_t m_;
  const StagePlace& place_;
  const bool apart_;  // the roles of the stage are split
  const int here_;    // the op's device, if they are
  Exists& exists_;
  Need& need_;
};

/// Calls need(product, index, number, part) for what the op needs. `exists(product, index, number,
/// part)` tells whether some op of the program makes it: recompute, prefetch, reduction, messages
/// and the products that settings wait for count only if the program has them; an I's parts are
/// those that exist, and at least part 0.
template <class Exists, class Need>
void needs(const Program& program, const StageGraph& graph, Op op, Exists&& exists, Need&& need) {
  Needs<std::remove_reference_t<Exists>, std::remove_reference_t<Need>>(program, graph, op, exists,
                                                                        need)
      .find();
}

}  // namespace stageline
