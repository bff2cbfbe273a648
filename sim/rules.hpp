// The one rule: which op needs which. Validation, lowering and list scheduling all ask here.
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
//      R(s,m), when there is one, stands between F(s,m) and its I, W or B; so does
//      OFFLOAD(s,m) ► PREFETCH(s,m). (+) Where I, W or B are on another device than F, the stash
//      comes by SEND_STASH, RECV_STASH or by way of the host, and U(s,k)'s weights go to the other
//      devices that read them by SEND_WEIGHTS, RECV_WEIGHTS.
//
// What the program's settings add, flow control without which a free-running stage would run away:
//      delay d     F(s,m) ◄── U(s,m-d-1);  with one copy of the weights also U(s,m) ◄── F(s,m+d)
//      window w    F(s,m) ◄── backward of (s,m-w)
//      copies      F(s,m) ◄── OFFLOAD(s,m-b), PREFETCH(s,m) ◄── backward of (s,m-b), b buffers,
//                  counted among the micro-batches of one replica
//      chunks c    F(s,n) ◄── F(s,n-1), and
//                  backward of (s,n) ◄── backward of (s,n+1), where these belong to the same
//                  sequence of c chunks (attention looks back)
//      lockstep    what is done in cycle n ◄── all that is done in cycle n-1
//
// Source: the table at the head of SCHEDULES (section 1), which is PyTorch's and Megatron's too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/op.hpp"
#include "sim/products.hpp"
#include "sim/program.hpp"
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
      return made(Product::rebuilt, stage, op.microbatch, 0);
    case OpKind::offload:
      return made(Product::offloaded, stage, op.microbatch, 0);
    case OpKind::prefetch:
      return made(Product::prefetched, stage, op.microbatch, 0);
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

/// Calls need(product, index, number, part) for what the op needs. `exists(product, index, number,
/// part)` says whether some op of the program makes it: recompute, prefetch, reduction, messages
/// and what settings wait for count only where the program has them; an I's parts are those that
/// exist, and at least part 0.
template <class Exists, class Need>
void needs(const Program& program, const StageGraph& graph, Op op, Exists&& exists, Need&& need) {
  const int stage = op.stage;
  const std::uint32_t m = op.microbatch;
  const StagePlace& place = program.placement.stage[op.stage];
  const bool apart = place.apart();
  const int here = apart ? device_of(graph, program.placement, op) : -1;
  const auto need_if = [&](Product product, int index, std::uint32_t number, int part) {
    if (exists(product, index, number, part)) need(product, index, number, part);
  };
  const auto gradient_of = [&](int of) {
    need(Product::gradient, of, m, 0);
    for (int part = 1; part <= max_parts && exists(Product::gradient, of, m, part); ++part) {
      need(Product::gradient, of, m, part);
    }
  };
  // By the wire of that cargo that reaches this device, where the program has the message.
  const auto arrives = [&](Cargo cargo, std::uint32_t number) {
    for (const int w : graph.receives[static_cast<std::size_t>(cargo)][op.stage]) {
      if (wire(graph, cargo, w).to != here || !exists(sent(cargo), w, number, 0)) continue;
      need(sent(cargo), w, number, 0);
      return true;
    }
    return false;
  };
  const auto stash = [&] {
    if (apart && exists(Product::prefetched, stage, m, 0)) {
      return need(Product::prefetched, stage, m, 0);
    }
    if (apart && here != place.replicas[0] && arrives(Cargo::stash, m)) return;
    need(Product::activation, stage, m, 0);
    need_if(Product::rebuilt, stage, m, 0);
    need_if(Product::prefetched, stage, m, 0);
  };
  const auto output_gradient = [&] {
    for (const int edge : graph.out[op.stage]) {
      const int to = graph.edges[static_cast<std::size_t>(edge)].to;
      // Usually one wire; else one of each part of the next stage's I to each reading device.
      bool over_a_wire = false;
      for (const int w : graph.receives[static_cast<std::size_t>(Cargo::gradient)][op.stage]) {
        const Wire& way = wire(graph, Cargo::gradient, w);
        if (way.edge != edge || (apart && way.to != here)) continue;
        if (exists(Product::sent_gradient, w, m, 0)) {
          need(Product::sent_gradient, w, m, 0);
        } else {
          need(Product::gradient, to, m, way.part);
        }
        over_a_wire = true;
      }
      if (!over_a_wire) gradient_of(to);
    }
  };
  const auto all_weight_gradients = [&] {
    const auto size = static_cast<std::uint32_t>(microbatches_per_update(program, stage));
    const std::uint32_t last = std::min((m + 1) * size, program.total_microbatches());
    for (std::uint32_t i = m * size; i < last; ++i) need(Product::weight_gradient, stage, i, 0);
  };
  const auto backward_of = [&](std::uint32_t number) {
    need_if(Product::weight_gradient, stage, number, 0);
    for (int part = 0; part < place.parts(); ++part) {
      need_if(Product::gradient, stage, number, part);
    }
  };
  // Micro-batches of one replica, `buffers` of them back; nothing at the start.
  const auto buffered = [&](auto&& wait) {
    const auto back = static_cast<std::uint32_t>(copy_buffers(program.copies)) *
                      static_cast<std::uint32_t>(place.replicas.size());
    if (back > 0 && m >= back) wait(m - back);
  };
  // The weights that F of this micro-batch waits for, and whoever reads the same elsewhere.
  const auto delayed_weights = [&] {
    if (program.delay.empty() || program.delay[op.stage] < 0) return;
    const auto delay = static_cast<std::uint32_t>(program.delay[op.stage]);
    if (m <= delay || (apart && arrives(Cargo::weights, m - delay - 1))) return;
    need_if(Product::updated, stage, m - delay - 1, 0);
  };
  const auto chunks = static_cast<std::uint32_t>(program.sequence_chunks);
  const auto chunk_before = [&] {
    if (m % chunks != 0) need(Product::activation, stage, m - 1, 0);
  };
  const auto backward_of_chunk_behind = [&] {
    if (m % chunks + 1 == chunks) return;
    const bool input = exists(Product::gradient, stage, m + 1, 0);
    need(input ? Product::gradient : Product::weight_gradient, stage, m + 1, 0);
  };
  const auto cycle_before = [&] {
    if (program.clock != Clock::lockstep) return;
    const std::int64_t before = cycle_of(program, op) - 1;
    const std::int64_t last = program.stages() - 1;
    const auto there = [&](std::int64_t number) {
      return number >= 0 && number < std::int64_t{program.total_microbatches()};
    };
    for (int s = 0; s <= last; ++s) {
      if (const std::int64_t f = before - s; there(f)) {
        need(Product::activation, s, static_cast<std::uint32_t>(f), 0);
      }
      if (const std::int64_t b = before - 2 * last + s; there(b)) {
        need(Product::weight_gradient, s, static_cast<std::uint32_t>(b), 0);
        need_if(Product::updated, s, static_cast<std::uint32_t>(b), 0);
      }
    }
  };
  switch (op.kind) {
    case OpKind::forward:
      for (const int edge : graph.in[op.stage]) {
        if (exists(Product::sent_activation, edge, m, 0)) {
          need(Product::sent_activation, edge, m, 0);
        } else {
          need(Product::activation, graph.edges[static_cast<std::size_t>(edge)].from, m, 0);
        }
      }
      delayed_weights();
      if (!program.window.empty() && program.window[op.stage] > 0 &&
          m >= static_cast<std::uint32_t>(program.window[op.stage])) {
        backward_of(m - static_cast<std::uint32_t>(program.window[op.stage]));
      }
      buffered([&](std::uint32_t before) { need_if(Product::offloaded, stage, before, 0); });
      chunk_before();
      return cycle_before();
    case OpKind::input_grad:
    case OpKind::backward:
      stash();
      output_gradient();
      if (apart && program.weights == WeightRule::stash) delayed_weights();
      backward_of_chunk_behind();
      return cycle_before();
    case OpKind::weight_grad:
      stash();
      if (!program.independent_w[op.stage] && exists(Product::gradient, stage, m, 0)) {
        gradient_of(stage);
      } else {
        output_gradient();
        backward_of_chunk_behind();
      }
      return cycle_before();
    case OpKind::recompute:
    case OpKind::offload:
      return need(Product::activation, stage, m, 0);
    case OpKind::prefetch:
      need(Product::offloaded, stage, m, 0);
      return buffered(backward_of);
    case OpKind::update:
      if (exists(Product::reduced, stage, m, op.part)) {
        return need(Product::reduced, stage, m, static_cast<int>(op.part));
      }
      all_weight_gradients();
      if (!program.delay.empty() && program.delay[op.stage] >= 0 &&
          program.weights == WeightRule::latest) {
        const std::uint32_t reader = m + static_cast<std::uint32_t>(program.delay[op.stage]);
        if (reader < program.total_microbatches()) {
          need(Product::activation, stage, reader, 0);
        }
      }
      return;
    case OpKind::reduce_grad:
      return all_weight_gradients();
    case OpKind::send_forward:
    case OpKind::send_stash:
      return need(Product::activation, stage, m, 0);
    case OpKind::send_backward:
      if (!apart) return gradient_of(stage);
      return need(Product::gradient, stage, m,
                  wire(graph, Cargo::gradient, wire_of(graph, op)).part);
    case OpKind::send_weights:
      return need(Product::updated, stage, m, 0);
    case OpKind::receive_forward:
    case OpKind::receive_backward:
    case OpKind::receive_stash:
    case OpKind::receive_weights:
      return need(sent(*cargo_of(op.kind)), wire_of(graph, op), m, 0);
  }
}

/// Which micro-batches have an I, by stage. A first stage may do without, and its W then takes the
/// output gradient that otherwise B or I take in.
class InputGrads {
 public:
  explicit InputGrads(const Program& program) : there_(program.placement.stage.size()) {
    for (const auto& list : program.ops) {
      for (const Op op : list) {
        if (op.kind != OpKind::input_grad) continue;
        there_[op.stage].resize(program.total_microbatches());
        there_[op.stage][op.microbatch] = true;
      }
    }
  }

  bool has(int stage, std::uint32_t microbatch) const {
    const std::vector<bool>& here = there_[static_cast<std::size_t>(stage)];
    return !here.empty() && here[microbatch];
  }

  /// The op before which a message with the output gradient arrives.
  bool takes_output_gradient(Op op) const {
    return op.kind == OpKind::backward || op.kind == OpKind::input_grad ||
           (op.kind == OpKind::weight_grad && !has(op.stage, op.microbatch));
  }

 private:
  std::vector<std::vector<bool>> there_;  // stages × micro-batches, empty where no I is
};

}  // namespace stageline
