// Random programs: is a device's memory the sum of all that the header of memory.hpp says is held?
#include "sim/analysis/memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/index.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::memory_contract_tests {
namespace {

struct Held {
  int device = 0;
  MemoryKind kind = MemoryKind::stash;
  Bytes bytes;
  Time from{};
  Time to{};
  StashPart part = StashPart::weight_grad;  // of the stash
};

// All that the header of memory.hpp says is held, one by one.
std::vector<Held> intervals(const test::Simulated& ran, const Costs& costs) {
  const Program& program = ran.program;
  std::map<Op, Span> span;
  std::map<Op, int> device;
  for (std::size_t lane = 0; lane < ran.timeline.lanes.size(); ++lane) {
    for (const Span& one : ran.timeline.lanes[lane]) {
      span[test::plain(one.op)] = one;
      device[test::plain(one.op)] = static_cast<int>(lane / lane_kinds);
    }
  }
  const auto has = [&](OpKind kind, int s, std::uint32_t m) {
    return span.count(test::op(kind, s, m)) > 0;
  };
  const auto of = [&](OpKind kind, int s, std::uint32_t m) { return span[test::op(kind, s, m)]; };
  std::vector<Held> all;
  for (int s = 0; s < program.stages(); ++s) {
    const StageCosts& stage = nth(costs.stage, s);
    for (std::uint32_t m = 0; m < program.total_microbatches(); ++m) {
      const bool whole = has(OpKind::backward, s, m);
      const bool input_grad = has(OpKind::input_grad, s, m);
      const Time w_end = of(whole ? OpKind::backward : OpKind::weight_grad, s, m).end;
      const Time i_end = input_grad ? of(OpKind::input_grad, s, m).end : w_end;
      const int here = device[test::op(OpKind::forward, s, m)];
      const Time made = of(OpKind::forward, s, m).start;
      Time from = made;
      const bool rebuilt = has(OpKind::recompute, s, m);
      const auto keep_boundary = [&](Time until) {
        all.push_back({here, MemoryKind::stash, stage.boundary, from, until, StashPart::boundary});
      };
      if (has(OpKind::offload, s, m)) {
        const Time gone = of(OpKind::offload, s, m).end;
        if (rebuilt) {
          keep_boundary(gone);
        } else {
          all.push_back({here, MemoryKind::stash, stage.stash_weight_grad, made, gone});
          all.push_back(
              {here, MemoryKind::stash, stage.stash_input_grad, made, gone, StashPart::input_grad});
        }
        from = of(OpKind::prefetch, s, m).start;
        // Meanwhile the host has it, or another device.
        if (const int there = stash_home(nth(program.placement.stage, s), m); there >= 0) {
          const Time out = of(OpKind::offload, s, m).start;
          const Time back = of(OpKind::prefetch, s, m).end;
          if (rebuilt) {
            all.push_back(
                {there, MemoryKind::stash, stage.boundary, out, back, StashPart::boundary});
          } else {
            all.push_back({there, MemoryKind::stash, stage.stash_weight_grad, out, back});
            all.push_back({there, MemoryKind::stash, stage.stash_input_grad, out, back,
                           StashPart::input_grad});
          }
        }
      }
      if (rebuilt) {
        const Time again = of(OpKind::recompute, s, m).start;
        keep_boundary(again);
        from = again;
      }
      all.push_back(
          {here, MemoryKind::stash, stage.stash_input_grad, from, i_end, StashPart::input_grad});
      all.push_back({here, MemoryKind::stash, stage.stash_weight_grad, from, w_end});
      all.push_back(
          {here, MemoryKind::stash, stage.stash_gradient, i_end, w_end, StashPart::gradients});
    }
  }
  const std::vector<test::EdgeWire> wires = test::wires_of(program);
  std::map<std::tuple<int, Time, Time>, Bytes> units;  // workspaces
  for (const auto& [op, when] : span) {
    if (lane_of(op.kind) == LaneKind::compute) {
      const StageCosts& stage = costs.stage[op.stage];
      const bool takes_gradient =
          op.kind == OpKind::backward || op.kind == OpKind::input_grad ||
          (op.kind == OpKind::weight_grad && !has(OpKind::input_grad, op.stage, op.microbatch));
      std::optional<Bytes> workspace;
      if (op.kind == OpKind::input_grad) {
        workspace = stage.input_grad_workspace;
      } else if (op.kind == OpKind::weight_grad && !takes_gradient) {
        workspace = stage.weight_grad_workspace;
      } else if (op.kind == OpKind::forward && has(OpKind::recompute, op.stage, op.microbatch)) {
        workspace = stage.recomputed_workspace;
      }
      if (takes_gradient && !workspace) workspace = stage.backward_workspace;
      const Bytes most = workspace.value_or(stage.workspace);
      // The ops of an overlapped pair, which start and end together, take turns.
      Bytes& of_unit = units[{device[op], when.start, when.end}];
      of_unit = std::max(of_unit, most);
    }
    const int s = op.stage;
    const std::uint32_t m = op.microbatch;
    const OpKind backward = has(OpKind::backward, s, m)     ? OpKind::backward
                            : has(OpKind::input_grad, s, m) ? OpKind::input_grad
                                                            : OpKind::weight_grad;
    for (std::size_t e = 0; e < wires.size(); ++e) {
      const bool out = wires[e].from == s && wires[e].among_outgoing == op.part;
      const bool in = wires[e].to == s && wires[e].among_incoming == op.part;
      const Bytes activation = costs.edges[e].activation;
      const Bytes gradient = costs.edges[e].gradient;
      if (out && op.kind == OpKind::send_forward) {
        const bool rebuilt = has(OpKind::recompute, s, m);
        all.push_back({device[op], MemoryKind::buffers,
                       activation - (rebuilt ? Bytes{} : costs.edges[e].activation_kept),
                       of(OpKind::forward, s, m).end, when.end});
      } else if (in && op.kind == OpKind::receive_forward) {
        all.push_back({device[op], MemoryKind::buffers, activation, when.start,
                       of(OpKind::forward, s, m).start});
      } else if (in && op.kind == OpKind::send_backward) {
        all.push_back(
            {device[op], MemoryKind::buffers, gradient, of(backward, s, m).end, when.end});
      } else if (out && op.kind == OpKind::receive_backward) {
        all.push_back(
            {device[op], MemoryKind::buffers, gradient, when.start, of(backward, s, m).start});
      }
    }
  }
  for (const auto& [unit, most] : units) {
    const auto& [on, start, end] = unit;
    all.push_back({on, MemoryKind::workspace, most, start, end});
  }
  // What no message carries is its reader's from its making on.
  const bool by_messages = std::any_of(span.begin(), span.end(),
                                       [](const auto& one) { return is_send(one.first.kind); });
  const auto hand_over = [&](Op maker, Op reader, Bytes bytes, Bytes with_maker) {
    if (span.count(maker) == 0 || span.count(reader) == 0) return;
    const bool stays = device[maker] == device[reader];
    if (!stays && by_messages) return;
    all.push_back({device[reader], MemoryKind::buffers, stays ? bytes - with_maker : bytes,
                   span[maker].end, span[reader].start});
  };
  for (const EdgeCosts& edge : costs.edges) {
    for (std::uint32_t m = 0; m < program.total_microbatches(); ++m) {
      const auto backward = [&](int s) {
        return test::op(has(OpKind::backward, s, m)     ? OpKind::backward
                        : has(OpKind::input_grad, s, m) ? OpKind::input_grad
                                                        : OpKind::weight_grad,
                        s, m);
      };
      const int from = edge.edge.from;
      const int to = edge.edge.to;
      const bool rebuilt = has(OpKind::recompute, from, m);
      hand_over(test::op(OpKind::forward, from, m), test::op(OpKind::forward, to, m),
                edge.activation, rebuilt ? Bytes{} : edge.activation_kept);
      hand_over(backward(to), backward(from), edge.gradient, Bytes{});
    }
  }
  return all;
}

TEST_CASE("random programs: the curve is the sum of all that is held, at every moment") {
  test::RandomPrograms random(61);
  for (int i = 0; i < 150; ++i) {
    const test::RandomProgram made = random.make(i % 2 == 0);
    Costs costs = made.costs;
    costs.stage[0].backward_workspace = Bytes{i % 11};
    costs.stage[0].stash_gradient = Bytes{i % 13};
    if (i % 3 == 0) costs.stage[0].input_grad_workspace = Bytes{i % 7};
    if (i % 5 == 0) costs.stage[0].weight_grad_workspace = Bytes{i % 17};
    if (i % 2 == 0) costs.stage[0].recomputed_workspace = Bytes{i % 19};
    for (EdgeCosts& edge : costs.edges) {
      edge.activation_kept = Bytes{std::min<std::int64_t>(edge.activation.count, i % 4)};
    }
    const test::Simulated ran = test::simulated(complete(made.program, costs), costs);
    CAPTURE(print(ran.program));
    const std::vector<Held> held = intervals(ran, costs);
    const MemoryProfile profile = memory_of(ran.program, costs, ran.timeline, Curves::all);
    for (std::size_t device = 0; device < profile.device.size(); ++device) {
      const std::vector<MemoryPoint>& curve = profile.device[device].curve;
      std::set<Time> moments;
      for (const Held& one : held) {
        moments.insert(one.from);
        moments.insert(one.to);
      }
      bool right = true;
      for (const Time at : moments) {
        MemoryUse expected{};
        StashUse stash{};
        for (const Held& one : held) {
          if (one.device != static_cast<int>(device) || at < one.from || at >= one.to) continue;
          if (one.kind == MemoryKind::stash) nth(stash, one.part) += one.bytes;
          Bytes& use = nth(expected, one.kind);
          // The ops of a pair, the only ones that compute at once, take turns.
          use = one.kind == MemoryKind::workspace ? std::max(use, one.bytes) : use + one.bytes;
        }
        auto point = std::find_if(curve.begin(), curve.end(),
                                  [&](const MemoryPoint& later) { return later.at > at; });
        REQUIRE(point != curve.begin());
        --point;
        for (const MemoryKind kind :
             {MemoryKind::stash, MemoryKind::buffers, MemoryKind::workspace}) {
          const auto k = as_size(kind);
          right = right && expected[k] == point->use[k];
        }
        right = right && stash == point->stash;
      }
      REQUIRE(right);
      Bytes peak{};
      for (const MemoryPoint& point : curve) peak = std::max(peak, total(point.use));
      CHECK(profile.device[device].peak == peak);
      CHECK(total(profile.device[device].at_peak) == peak);
      for (const MemoryKind kind :
           {MemoryKind::stash, MemoryKind::buffers, MemoryKind::workspace, MemoryKind::versions}) {
        CHECK(nth(profile.device[device].at_end, kind) == Bytes{});
      }
    }
  }
}

}  // namespace
}  // namespace stageline::memory_contract_tests
