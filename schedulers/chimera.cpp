// Chimera (Li & Hoefler, SC 2021, arXiv 2107.06925): two replicas of the model in opposite
// directions, for an even number p of devices. Even micro-batches go down, odd ones up. With F = B
// and a slot for each, micro-batch i of a direction has its forward at stage s in slot s + 2i and
// its backward in slot 2p-1-s + 2i; the other direction has the other parity, so that up to p
// micro-batches merge without a conflict. A step of m = p takes p·F + (2p-2)·B where B ≥ F, and a
// device holds p/2+1 to p stashes, and weights twice. (1F1B each way, merged as it comes, takes
// longer.)
//
// pipelines=2f has f of them each way (section 3.6), for twice an f that divides p/2: pipeline i
// begins i·p/f devices further on, round the devices, and each has every 2f-th micro-batch. A unit
// of p then idles for p/f - 2 slots instead of p-2, a device holds p-p/2f+1 to p stashes, and
// weights 2f times.
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
// figure: devices 8, microbatches 8, pipelines 4, F 1, I 1, W 1
//   0 |04 32761bb5ff ccddgghhaa  ee
//   1 | 03472165 bbccffggddaahhee
//   2 | 30741256 ccbbggffaaddeehh
//   3 |37 01452cc6gg bbaaffeedd  hh
//   4 |26 10543dd7hh aabbeeffcc  gg
//   5 | 21650347 ddaahheebbccffgg
//   6 | 12563074 aaddeehhccbbggff
//   7 |15 23670aa4ee ddcchhggbb  ff
//
// figure: devices 4, microbatches 16, concat doubling, F 1, I 1, W 1
//   0 |024613bbdd57 aaffcchhee80gg2491jjll35iinnkkppmm  oo
//   1 | 02134657bbaaddccffeehhgg80912435jjiillkknnmmppoo
//   2 | 13025746aabbccddeeffgghh91803524iijjkkllmmnnoopp
//   3 |135702aacc46 bbeeddggff91hh3580iikk24jjmmlloonn  pp
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedulers/parts/backward_first.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::chimera_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"concat", "direct|doubling", "direct",
     "more micro-batches than devices: unit behind unit, or two forwards to a backward (rebuilt)",
     "the order is rebuilt"},
    {"pipelines", "2, 4 or another even divisor of the devices", "2",
     "pipelines, half of them each way: more have less bubble and more copies of the weights"},
};

int pipelines_of(const Knobs& knobs) {
  return parse_number<int>(knobs.at("pipelines")).value_or(0);
}

void check_pipelines(int devices, const Knobs& knobs) {
  const int pipelines = pipelines_of(knobs);
  const bool divides = pipelines >= 2 && pipelines % 2 == 0 && devices % pipelines == 0;
  if (!divides || pipelines > max_parts) {
    std::vector<int> divisors;
    for (int each = 2; each <= std::min(devices, max_parts); each += 2) {
      if (devices % each == 0) divisors.push_back(each);
    }
    throw UsageError(fmt::format(
        "chimera: pipelines is an even divisor of the {} devices, so that none meets another on a "
        "stage: one of {} (it is \"{}\")",
        devices, fmt::join(divisors, ", "), knobs.at("pipelines")));
  }
  if (pipelines == 2 || knobs.at("concat") == "direct") return;
  throw UsageError(fmt::format(
      "chimera: concat={} is an order of two pipelines, and there are {}; leave out one of the two",
      knobs.at("concat"), pipelines));
}

// Then a step begins with the first pipeline, or with the first after half of them, and the next
// but one is alike.
void check_turns(int microbatches, int pipelines) {
  const int half = pipelines / 2;
  if (microbatches % half == 0) return;
  const int next = microbatches + half - microbatches % half;
  throw UsageError(fmt::format(
      "chimera: {} micro-batch{} a step among {} pipelines: take a multiple of {}, such as {}",
      microbatches, microbatches == 1 ? "" : "es", pipelines, half, next));
}

// Pipeline 2i goes down the devices from i·p/f on, 2i + 1 up again from where that one ends.
Placement place_pipelines(int devices, int pipelines) {
  Placement placement = straight_placement(devices);
  for (int s = 0; s < devices; ++s) {
    std::vector<int>& homes = nth(placement.stage, s).replicas;
    homes.clear();
    for (int i = 0; i < pipelines; ++i) {
      const int begin = i / 2 * (2 * devices / pipelines);
      homes.push_back((begin + (i % 2 == 0 ? s : devices - 1 - s)) % devices);
    }
  }
  return placement;
}

Placement place(int devices, const Knobs& knobs) {
  if (devices % 2 == 0) {
    check_pipelines(devices, knobs);
    return place_pipelines(devices, pipelines_of(knobs));
  }
  throw UsageError(fmt::format(
      "chimera: two directions through {} device{} would meet on the same stage; it needs an even "
      "number; take {}",
      devices, devices == 1 ? "" : "s",
      devices == 1 ? std::string("2") : fmt::format("{} or {}", devices - 1, devices + 1)));
}

using Orders = std::vector<std::vector<FlowTurn>>;  // of one step, by device; flow 0 is down

// Units of p micro-batches. `first`: the pipeline of the step's first micro-batch.
Orders direct(const Placement& placement, int microbatches, int first) {
  const int devices = placement.stages();
  const auto pipelines = static_cast<int>(placement.stage[0].replicas.size());
  std::vector<std::vector<std::pair<int, FlowTurn>>> slots(as_size(devices));
  for (int j = 0; j < microbatches; ++j) {
    const int flow = (first + j) % pipelines;
    const int begin = j / devices * 2 * devices + j % devices / pipelines * 2;
    for (int s = 0; s < devices; ++s) {
      auto& here = nth(slots, nth(nth(placement.stage, s).replicas, flow));
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
  const int pipelines = pipelines_of(problem.knobs);
  check_turns(program.microbatches, pipelines);
  std::vector<Orders> orders(as_size(pipelines));  // by the pipeline that begins a step
  for (int step = 0; step < program.steps; ++step) {
    const auto first = static_cast<int>(std::int64_t{step} * program.microbatches % pipelines);
    Orders& order = nth(orders, first);
    if (order.empty()) {
      order = doubled ? doubling(program.stages(), program.microbatches, first == 1)
                      : direct(program.placement, program.microbatches, first);
    }
    append(program, order, step);
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
