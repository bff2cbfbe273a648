// The one rule: which op needs which. Validation, lowering and list scheduling all ask here.
//
//      F(s-1,m) ──a──► F(s,m) ──a──► F(s+1,m)        a  activation: over a wire (SEND_F, RECV_F)
//                        │ stash                        where the stages live on two devices
//                        ▼
//      I(s-1,m) ◄──g── I(s,m) ◄──g── I(s+1,m)        g  gradient of the stage's input; B makes it
//                        │              │               and w at once; SEND_B, RECV_B
//                        ▼ (*)          │
//                      W(s,m) ◄────g────┘            (*) not where the stage is independent_w
//                        │ w
//                        ▼
//                      U(s,k)                        waits for the w of all its micro-batches,
//                                                    between replicas through REDUCE_GRAD(s,k)
//      R(s,m), when there is one, stands between F(s,m) and its I, W or B; so does
//      OFFLOAD(s,m) ► PREFETCH(s,m).
//
// Source: the table at the head of SCHEDULES (section 1), which is PyTorch's and Megatron's too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/op.hpp"
#include "sim/program.hpp"

namespace stageline {

/// What ops make for one another. Index: a stage, or for `sent_*` an edge of Program::edges.
/// Number: a micro-batch, for `reduced` an update.
enum class Product : std::uint8_t {
  activation,       // by F
  gradient,         // of the stage's input; by I (a part each) or B
  weight_gradient,  // by W or B
  rebuilt,          // stash; by R
  offloaded,        // stash; by OFFLOAD
  prefetched,       // stash; by PREFETCH
  sent_activation,  // by a SEND_F and its RECV_F together
  sent_gradient,    // by a SEND_B and its RECV_B together
  reduced,          // by REDUCE_GRAD, part = replica
};
inline constexpr int products = 9;

/// The stage graph's edges by stage, as indices into Program::edges.
struct StageGraph {
  std::vector<StageEdge> edges;
  std::vector<std::vector<int>> in;   // by stage
  std::vector<std::vector<int>> out;  //
};
StageGraph stage_graph(const Program& program);

/// The edge a message travels on, or -1 when its part names none. SEND_F and RECV_B count the
/// stage's outgoing edges, RECV_F and SEND_B its incoming ones.
inline int edge_of(const StageGraph& graph, Op op) {
  const bool outgoing = op.kind == OpKind::send_forward || op.kind == OpKind::receive_backward;
  const auto& edges = outgoing ? graph.out[op.stage] : graph.in[op.stage];
  return op.part < edges.size() ? edges[op.part] : -1;
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
      return made(Product::sent_activation, edge_of(graph, op), op.microbatch, 0);
    case OpKind::send_backward:
      return made(Product::sent_gradient, edge_of(graph, op), op.microbatch, 0);
    case OpKind::reduce_grad:
      return made(Product::reduced, stage, op.microbatch, static_cast<int>(op.part));
    case OpKind::update:
    case OpKind::receive_forward:
    case OpKind::receive_backward:
      return;
  }
}

/// Calls need(product, index, number, part) for what the op needs. `exists(product, index, number,
/// part)` says whether some op of the program makes it: recompute, prefetch, reduction and messages
/// count only where the program has them; an I's parts are those that exist, and at least part 0.
template <class Exists, class Need>
void needs(const Program& program, const StageGraph& graph, Op op, Exists&& exists, Need&& need) {
  const int stage = op.stage;
  const std::uint32_t m = op.microbatch;
  const auto gradient_of = [&](int of) {
    need(Product::gradient, of, m, 0);
    for (int part = 1; part <= max_parts && exists(Product::gradient, of, m, part); ++part) {
      need(Product::gradient, of, m, part);
    }
  };
  const auto stash = [&] {
    need(Product::activation, stage, m, 0);
    if (exists(Product::rebuilt, stage, m, 0)) need(Product::rebuilt, stage, m, 0);
    if (exists(Product::prefetched, stage, m, 0)) need(Product::prefetched, stage, m, 0);
  };
  const auto output_gradient = [&] {
    for (const int edge : graph.out[op.stage]) {
      if (exists(Product::sent_gradient, edge, m, 0)) {
        need(Product::sent_gradient, edge, m, 0);
      } else {
        gradient_of(graph.edges[static_cast<std::size_t>(edge)].to);
      }
    }
  };
  const auto all_weight_gradients = [&] {
    const auto size = static_cast<std::uint32_t>(microbatches_per_update(program, stage));
    const std::uint32_t last = std::min((m + 1) * size, program.total_microbatches());
    for (std::uint32_t i = m * size; i < last; ++i) need(Product::weight_gradient, stage, i, 0);
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
      return;
    case OpKind::input_grad:
    case OpKind::backward:
      stash();
      return output_gradient();
    case OpKind::weight_grad:
      stash();
      if (!program.independent_w[op.stage] && exists(Product::gradient, stage, m, 0)) {
        return gradient_of(stage);
      }
      return output_gradient();
    case OpKind::recompute:
    case OpKind::offload:
      return need(Product::activation, stage, m, 0);
    case OpKind::prefetch:
      return need(Product::offloaded, stage, m, 0);
    case OpKind::update:
      if (exists(Product::reduced, stage, m, op.part)) {
        return need(Product::reduced, stage, m, static_cast<int>(op.part));
      }
      return all_weight_gradients();
    case OpKind::reduce_grad:
      return all_weight_gradients();
    case OpKind::send_forward:
      return need(Product::activation, stage, m, 0);
    case OpKind::send_backward:
      return gradient_of(stage);
    case OpKind::receive_forward:
      return need(Product::sent_activation, edge_of(graph, op), m, 0);
    case OpKind::receive_backward:
      return need(Product::sent_gradient, edge_of(graph, op), m, 0);
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

/// Numbers for products, so that a flat array can hold something about each: only kinds that the
/// program makes have room. index() is -1 for what is outside.
class ProductIndex {
 public:
  explicit ProductIndex(const Program& program, const StageGraph& graph);

  std::size_t size() const { return size_; }
  bool has(Product product) const { return row_[static_cast<std::size_t>(product)].columns > 0; }
  std::int64_t index(Product product, int stage_or_edge, std::uint32_t number, int part) const {
    const Row& row = row_[static_cast<std::size_t>(product)];
    if (number >= row.columns || part >= row.parts || stage_or_edge < 0) return -1;
    return row.base + stage_or_edge * row.stride + static_cast<std::int64_t>(number) * row.parts +
           part;
  }

 private:
  struct Row {
    std::int64_t base = 0;
    std::int64_t stride = 0;    // from stage to stage
    std::uint32_t columns = 0;  // 0: not made
    int parts = 1;
  };
  Row row_[products];
  std::size_t size_ = 0;
};

}  // namespace stageline
