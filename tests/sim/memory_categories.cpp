// Which categories make up a device's memory, and at which op does it peak?
#include "sim/analysis/memory_categories.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "sim/base/index.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::memory_categories_tests {
namespace {

using test::straight_text;

// One stage whose sizes tell each other apart in any sum; F=1, I=1, W=1.
Costs one_stage() {
  Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  StageCosts& stage = costs.stage[0];
  stage.weights = Bytes{100'000};
  stage.gradients = Bytes{200'000};
  stage.optimizer_state = Bytes{400'000};
  stage.stash_input_grad = Bytes{10};
  stage.stash_weight_grad = Bytes{1'000};
  stage.stash_gradient = Bytes{7};
  stage.workspace = Bytes{3};
  return costs;
}

MemoryProfile profile_of(const std::string& text, const Costs& costs) {
  const test::Simulated ran = test::simulated(parse_program(text), costs);
  return memory_of(ran.program, costs, ran.timeline, Curves::all);
}

// "weights 100000, workspace 3": the categories that are not empty.
std::string spelled(const CategoryUse& use) {
  std::string text;
  for (int category = 0; category < memory_categories; ++category) {
    if (nth(use, category) == Bytes{}) continue;
    text += (text.empty() ? "" : ", ") + std::string(name(static_cast<MemoryCategory>(category))) +
            " " + std::to_string(nth(use, category).count);
  }
  return text;
}

std::string peak_of(const MemoryProfile& profile, int device = 0) {
  const DeviceMemory& memory = nth(profile.device, device);
  std::string op = "nothing";
  if (memory.peak_op) {
    op = print(memory.peak_op->op);
    if (memory.peak_op->other) op += "+" + print(*memory.peak_op->other);
    switch (memory.peak_op->moment) {
      case PeakOp::Moment::runs:
        op += " runs";
        break;
      case PeakOp::Moment::starts:
        op += " starts";
        break;
      case PeakOp::Moment::has_ended:
        op += " has ended";
        break;
    }
  }
  return std::to_string(memory.peak_at.count()) + " " + op + ": " +
         spelled(peak_by_category(memory));
}

const char* const split_backwards = "gpu0: 0F0 0F1 0I0 0W0 0I1 0W1\n";

TEST_CASE("the peak has its op and its composition: both stashes, while the first I runs") {
  Costs costs = one_stage();
  costs.stage[0].communication_buffer = Bytes{50'000};
  costs.stage[0].blocking.input_grad = Time{1};
  const MemoryProfile profile = profile_of(straight_text(1, 2, split_backwards), costs);
  // 700,000 of state, two stashes of 1,010, what the collectives of I work on, and the workspace.
  CHECK(profile.device[0].peak == Bytes{752'023});
  CHECK(profile.device[0].stashes_at_peak == 2);
  CHECK(peak_of(profile) ==
        "2 0I0 runs: weights 100000, gradients 200000, optimizer 400000, stash_weight_grad 2000, "
        "stash_input_grad 20, communication 50000, workspace 3");
}

TEST_CASE("gradients that I keeps for W are a part of the stash") {
  Costs costs = one_stage();
  costs.stage[0].stash_gradient = Bytes{70};
  const MemoryProfile profile = profile_of(straight_text(1, 2, split_backwards), costs);
  // Behind I0: its 10 are free, and 70 have come.
  CHECK(profile.device[0].peak == Bytes{700'000 + 2'000 + 10 + 70 + 3});
  CHECK(peak_of(profile) ==
        "3 0W0 runs: weights 100000, gradients 200000, optimizer 400000, stash_weight_grad 2000, "
        "stash_input_grad 10, stash_gradients 70, workspace 3");
}

TEST_CASE("inputs of recomputed micro-batches are a part of the stash until R") {
  Costs costs = one_stage();
  costs.stage[0].boundary = Bytes{500};
  const MemoryProfile profile =
      profile_of(straight_text(1, 2, "gpu0: 0F0 0F1 0R0 0B0 0R1 0B1\n"), costs);
  CHECK(profile.device[0].stashes_at_peak == 1);
  CHECK(peak_of(profile) ==
        "2 0R0 runs: weights 100000, gradients 200000, optimizer 400000, stash_weight_grad 1000, "
        "stash_input_grad 10, stash_boundary 500, workspace 3");
}

TEST_CASE("while a part of its stash is not there, that is taken off what W reads, then I") {
  Costs costs = uniform_costs(2, 2, Time{7}, Time{1}, Time{1}, Time{4});
  costs.edges[0].activation = Bytes{5};
  StageCosts& second = costs.stage[1];
  second.forward = Time{10};
  second.stash_input_grad = Bytes{100};
  second.stash_weight_grad = Bytes{1'000};
  second.steps.forward = {{0.5, Bytes{-1'030}}, {1, Bytes{20}}};
  const MemoryProfile profile =
      profile_of(straight_text(2, 2,
                               "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                               "gpu1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1\n"),
                 costs);
  // The F of gpu1 runs from 12 to 22, the second message comes from 14 on.
  const auto& curve = profile.device[1].curve;
  const auto first = std::find_if(curve.begin(), curve.end(),
                                  [](const MemoryPoint& point) { return point.at == Time{12}; });
  REQUIRE(first != curve.end());
  CHECK(nth(first->use, MemoryKind::stash) == Bytes{70});
  CHECK((first->stash == StashUse{Bytes{0}, Bytes{70}, Bytes{0}, Bytes{0}}));
}

TEST_CASE("an overlapped pair peaks as two ops, which use a buffer of collectives by turns") {
  Costs costs = one_stage();
  costs.stage[0].communication_buffer = Bytes{50'000};
  costs.stage[0].blocking.forward = costs.stage[0].blocking.backward = Time{1};
  const MemoryProfile profile =
      profile_of(straight_text(1, 2, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n"), costs);
  CHECK(peak_of(profile) ==
        "1 0F1+0B0 runs: weights 100000, gradients 200000, optimizer 400000, "
        "stash_weight_grad 2000, stash_input_grad 20, communication 50000, workspace 3");
}

TEST_CASE("a device that does not compute peaks when a message comes, or when an op has ended") {
  Costs costs = uniform_costs(2, 2, Time{1}, Time{1}, Time{1}, Time{4});
  for (StageCosts& stage : costs.stage) stage.stash_input_grad = stage.stash_weight_grad = Bytes{0};
  costs.edges[0].activation = Bytes{5};
  costs.edges[0].gradient = Bytes{9};
  const std::string text =
      straight_text(2, 1, "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0\ngpu1: 1RECV_F0 1F0 1B0 1SEND_B0\n");
  // gpu0: F 0-1, send 1-6. gpu1: F 6-7, B 7-9, send 9-18.
  const MemoryProfile profile = profile_of(text, costs);
  CHECK(peak_of(profile, 0) == "9 0RECV_B0 starts: weights 1, gradients 1, buffers 9");
  CHECK(peak_of(profile, 1) == "9 1B0 has ended: weights 1, gradients 1, buffers 9");
  const Timeline idle{{"a"}, {{{*parse_op("0F0"), Time{0}, Time{3}}}, {}, {}, {}, {}}};
  REQUIRE(peak_op_of(idle, 0, Time{3}));
  CHECK(*peak_op_of(idle, 0, Time{3}) ==
        PeakOp{*parse_op("0F0"), std::nullopt, PeakOp::Moment::has_ended});
  CHECK(!peak_op_of(idle, 0, Time{4}));
  const Timeline empty{{"a"}, {{{*parse_op("0U0"), Time{3}, Time{3}}}, {}, {}, {}, {}}};
  CHECK(!peak_op_of(empty, 0, Time{3}));
  CHECK(*peak_op_of(idle, 0, Time{2}) == PeakOp{*parse_op("0F0"), std::nullopt, {}});
}

TEST_CASE("the reserve is below all, and in no peak") {
  MemoryProfile profile = profile_of(straight_text(1, 1, "gpu0: 0F0 0B0\n"), one_stage());
  const Bytes peak = profile.device[0].peak;
  CHECK(profile.device[0].reserve == Bytes{});
  profile.device[0].reserve = Bytes{9'000'000};
  CHECK(profile.device[0].peak == peak);
  CHECK(peak_of(profile) ==
        "0 0F0 runs: reserve 9000000, weights 100000, gradients 200000, optimizer 400000, "
        "stash_weight_grad 1000, stash_input_grad 10, workspace 3");
}

TEST_CASE("every part of the stash has a name, and every category another") {
  std::string names;
  for (int part = 0; part < stash_parts; ++part) {
    names += std::string(name(static_cast<StashPart>(part))) + " ";
  }
  CHECK(names == "stash_weight_grad stash_input_grad stash_gradients stash_boundary ");
  names.clear();
  for (int category = 0; category < memory_categories; ++category) {
    names += std::string(name(static_cast<MemoryCategory>(category))) + " ";
  }
  CHECK(names ==
        "reserve weights versions gradients optimizer stash_weight_grad stash_input_grad "
        "stash_gradients stash_boundary buffers communication workspace ");
}

Time blocking(const StageCosts& stage, OpKind kind) {
  if (kind == OpKind::forward) return stage.blocking.forward;
  if (kind == OpKind::weight_grad) return stage.blocking.weight_grad;
  return kind == OpKind::update ? stage.blocking.update : Time{};
}

// What collectives hold at a moment, from the spans: of the compute lane one at a time.
Bytes communication_at(const test::Simulated& ran, const Costs& costs, int device, Time at) {
  Bytes computing{};
  Bytes reducing{};
  for (const LaneKind lane : {LaneKind::compute, LaneKind::send}) {
    for (const Span& span : ran.timeline.lane(device, lane)) {
      if (at < span.start || at >= span.end) continue;
      const StageCosts& stage = costs.stage[span.op.stage];
      if (span.op.kind == OpKind::reduce_grad) reducing += stage.communication_buffer;
      if (blocking(stage, span.op.kind) == Time{}) continue;
      computing = std::max(computing, stage.communication_buffer);
    }
  }
  return computing + reducing;
}

std::string broken_law(const test::Simulated& ran, const Costs& costs, int device,
                       const DeviceMemory& memory) {
  Bytes highest{};
  for (const MemoryPoint& point : memory.curve) {
    const CategoryUse use = by_category(point.use, point.stash, Bytes{});
    Bytes sum{};
    for (const Bytes bytes : use) {
      if (bytes < Bytes{}) return "a category is negative";
      sum += bytes;
    }
    if (sum != total(point.use)) return "the categories are not all";
    Bytes stash{};
    for (const Bytes bytes : point.stash) stash += bytes;
    if (stash != nth(point.use, MemoryKind::stash)) return "the parts are not the stash";
    const Bytes communication = communication_at(ran, costs, device, point.at);
    if (nth(point.use, MemoryKind::communication) != communication) {
      return "collectives hold something else";
    }
    if (sum > highest) highest = sum;
    if (point.at != memory.peak_at) continue;
    if (point.use != memory.at_peak || point.stash != memory.stash_at_peak) {
      return "the peak is made of something else";
    }
  }
  if (highest != memory.peak) return "the peak is not the highest point";
  for (int kind = 0; kind < memory_kinds; ++kind) {
    const bool stays = kind == static_cast<int>(MemoryKind::weights) ||
                       kind == static_cast<int>(MemoryKind::gradients) ||
                       kind == static_cast<int>(MemoryKind::optimizer);
    if (!stays && nth(memory.at_end, kind) != Bytes{}) return "something is left at the end";
  }
  Bytes state{};
  for (const MemoryKind kind :
       {MemoryKind::weights, MemoryKind::gradients, MemoryKind::optimizer}) {
    state += nth(memory.at_end, kind);
    if (nth(memory.at_end, kind) != nth(memory.at_peak, kind)) return "state comes or goes";
  }
  if (!memory.curve.empty() && total(memory.at_end) != state) return "more than state is left";
  return "";
}

TEST_CASE("random programs: the categories are the memory, and the peak is one of its moments") {
  test::RandomPrograms random(67);
  int reductions = 0;
  int busy_peaks = 0;
  for (int i = 0; i < 200; ++i) {
    const test::RandomProgram made = random.make(i % 2 == 0);
    Costs costs = made.costs;
    for (std::size_t s = 0; s < costs.stage.size(); ++s) {
      StageCosts& stage = costs.stage[s];
      stage.communication_buffer = Bytes{(i + static_cast<int>(s)) % 5};
      stage.stash_gradient = Bytes{i % 13};
      if (i % 2 == 0) stage.blocking.forward = Time{1};
      if (i % 3 == 0) stage.blocking.weight_grad = Time{1};
      if (i % 5 == 0) stage.blocking.update = Time{1};
    }
    const test::Simulated ran = test::simulated(complete(made.program, costs), costs);
    CAPTURE(print(ran.program));
    const MemoryProfile profile = memory_of(ran.program, costs, ran.timeline, Curves::all);
    const MemoryProfile without = memory_of(ran.program, costs, ran.timeline);
    for (std::size_t d = 0; d < profile.device.size(); ++d) {
      const int device = static_cast<int>(d);
      const DeviceMemory& memory = profile.device[d];
      CHECK(broken_law(ran, costs, device, memory) == "");
      CHECK(memory.peak == without.device[d].peak);
      CHECK(memory.peak_op == without.device[d].peak_op);
      for (const Span& span : ran.timeline.lane(device, LaneKind::send)) {
        reductions += span.op.kind == OpKind::reduce_grad && span.end > span.start ? 1 : 0;
      }
      const Spans& compute = ran.timeline.lane(device, LaneKind::compute);
      const auto running = std::find_if(compute.begin(), compute.end(), [&](const Span& span) {
        return span.start <= memory.peak_at && memory.peak_at < span.end;
      });
      if (running == compute.end() || memory.peak == Bytes{}) continue;
      ++busy_peaks;
      REQUIRE(memory.peak_op);
      CHECK(memory.peak_op->op == running->op);
      CHECK(memory.peak_op->moment == PeakOp::Moment::runs);
      CHECK(memory.peak_op->other.has_value() == (running->op.overlapped != 0));
    }
  }
  CHECK(reductions > 20);
  CHECK(busy_peaks > 100);
}

}  // namespace
}  // namespace stageline::memory_categories_tests
