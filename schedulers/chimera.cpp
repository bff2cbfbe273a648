// Chimera (Li & Hoefler, SC 2021, arXiv 2107.06925): two replicas of the model in opposite
// directions, for an even number p of devices. Even micro-batches go down, odd ones up. With F = B
// and a slot for each, micro-batch i of a direction has its forward at stage s in slot s + 2i and
// its backward in slot 2p-1-s + 2i; the other direction has the other parity, so that up to p
// micro-batches merge without a conflict. A step of m = p takes p·F + (2p-2)·B where B ≥ F, and a
// device holds p/2+1 to p stashes, and weights twice. (1F1B each way, merged as it comes, takes
// longer.)
//
// More than p micro-batches: concat=direct puts units of p behind each other, 2p slots apart, so
// that one's last backwards fill up with the next one's forwards; without a gap where F = B.
// concat=doubling takes two micro-batches' forwards in a slot and one's backward, which are alike
// where B = 2F: no gap either, for twice the stashes (order rebuilt, as
// schedulers/parts/backward_first.hpp does it, p/2 pairs each way). The paper's backward halving
// needs micro-batches of half the size on the way back, which a program cannot say, and is left
// out.
//
// figure: devices 4, microbatches 4, F 1, I 1, W 1
//   0 |02 1bb3dd aa  cc
//   1 | 0123 bbaaddcc
//   2 | 1032 aabbccdd
//   3 |13 0aa2cc bb  dd
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |02 1bb3dd aa4 cc65ff7hh ee  gg
//   1 | 0123 bbaaddcc45 67 ffeehhgg
//   2 | 1032 aabbccdd54 76 eeffgghh
//   3 |13 0aa2cc bb5 dd74ee6gg ff  hh
//
// figure: devices 4, microbatches 16, concat doubling, F 1, I 1, W 1
//   0 |024613bbdd57 aaffcchhee80gg2491jjll35iinnkkppmm  oo
//   1 | 02134657bbaaddccffeehhgg80912435jjiillkknnmmppoo
//   2 | 13025746aabbccddeeffgghh91803524iijjkkllmmnnoopp
//   3 |135702aacc46 bbeeddggff91hh3580iikk24jjmmlloonn  pp
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "schedulers/parts/backward_first.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::chimera_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"concat", "direct|doubling", "direct",
     "more micro-batches than devices: unit behind unit, or two forwards to a backward (rebuilt)",
     "the order is rebuilt"},
};

Placement place(int devices, const Knobs&) {
  if (devices % 2 == 0) return opposite_placement(devices);
  throw UsageError(fmt::format(
      "chimera: two directions through {} device{} would meet on the same stage; it needs an even "
      "number; take {}",
      devices, devices == 1 ? "" : "s",
      devices == 1 ? std::string("2") : fmt::format("{} or {}", devices - 1, devices + 1)));
}

using Orders = std::vector<std::vector<FlowTurn>>;  // of one step, by device; flow 0 is down

// Units of p micro-batches. `up_first`: the step's first micro-batch goes up.
Orders direct(int devices, int microbatches, bool up_first) {
  std::vector<std::vector<std::pair<int, FlowTurn>>> slots(as_size(devices));
  for (int j = 0; j < microbatches; ++j) {
    const int flow = (j % 2 == 1) != up_first ? 1 : 0;
    const int begin = j / devices * 2 * devices + j % devices / 2 * 2;
    for (int s = 0; s < devices; ++s) {
      auto& here = nth(slots, flow == 0 ? s : devices - 1 - s);
      here.push_back({begin + s, {OpKind::forward, flow, s, j}});
      here.push_back({begin + 2 * devices - 1 - s, {OpKind::backward, flow, s, j}});
    }
  }
  Orders orders;
  for (auto& here : slots) {
    std::sort(here.begin(), here.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    orders.emplace_back();
    for (const auto& [slot, turn] : here) orders.back().push_back(turn);
  }
  return orders;
}

Orders doubling(int devices, int microbatches, bool up_first) {
  std::vector<Flow> flows(2);
  for (int s = 0; s < devices; ++s) {
    flows[0].device.push_back(s);
    flows[1].device.push_back(devices - 1 - s);
  }
  flows[0].microbatches = (microbatches + (up_first ? 0 : 1)) / 2;
  flows[1].microbatches = microbatches - flows[0].microbatches;
  Orders orders = backward_first(flows, devices, 2, devices / 2);
  for (auto& order : orders) {
    for (FlowTurn& turn : order) {
      turn.microbatch = 2 * turn.microbatch + ((turn.flow == 1) != up_first ? 1 : 0);
    }
  }
  return orders;
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "chimera", WeightRule::flush);
  const bool doubled = problem.knobs.at("concat") == "doubling";
  const auto make = [&](bool up_first) {
    return (doubled ? doubling : direct)(program.stages(), program.microbatches, up_first);
  };
  // After an odd number of micro-batches the next step begins the other way.
  const bool turns = program.microbatches % 2 == 1 && program.steps > 1;
  const Orders orders[] = {make(false), turns ? make(true) : Orders{}};
  for (int step = 0; step < program.steps; ++step) {
    append(program, orders[turns ? step % 2 : 0], step);
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "chimera",
    "two replicas in opposite directions, merged",
    "Li & Hoefler 2021 (Chimera), arXiv 2107.06925",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::chimera_scheduler
