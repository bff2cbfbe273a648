// How many bytes does each device hold, and until when?
#include "sim/analysis/memory.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include "tests/text.hpp"

namespace stageline::memory_tests {
namespace {

using test::straight_text;

// Bytes that tell each other apart in any sum; F=1, I=1, W=1.
Costs coded_costs(int stages, int transfer = 0) {
  Costs costs = uniform_costs(stages, stages, Time{1}, Time{1}, Time{1}, Time{transfer});
  for (StageCosts& stage : costs.stage) {
    stage.weights = Bytes{};
    stage.gradients = Bytes{};
    stage.boundary = Bytes{10};
    stage.stash_input_grad = Bytes{100};
    stage.stash_weight_grad = Bytes{1000};
  }
  return costs;
}

// The curve of one category on one device: "0:1100 3:0", at changes only.
std::string curve(const test::Simulated& ran, const Costs& costs, int device, MemoryKind kind) {
  const MemoryProfile profile = memory_of(ran.program, costs, ran.timeline, Curves::all);
  std::string text;
  Bytes last{-1};
  for (const MemoryPoint& point : nth(profile.device, device).curve) {
    const Bytes now = nth(point.use, kind);
    if (now == last) continue;
    last = now;
    text += (text.empty() ? "" : " ") + std::to_string(point.at.count()) + ":" +
            std::to_string(now.count);
  }
  return text;
}
std::string curve(const std::string& text, const Costs& costs, MemoryKind kind, int device = 0) {
  return curve(test::simulated(parse_program(text), costs), costs, device, kind);
}

TEST_CASE("B frees the whole stash, at its end") {
  CHECK(curve(straight_text(1, 2, "gpu0: 0F0 0F1 0B0 0B1\n"), coded_costs(1), MemoryKind::stash) ==
        "0:1100 1:2200 4:1100 6:0");
}

TEST_CASE("I frees what only I reads, W the rest, in either order") {
  const Costs costs = coded_costs(2);
  const auto second = [&](const std::string& ops, const std::string& header) {
    return curve(straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: " + ops + "\n", header), costs,
                 MemoryKind::stash, 1);
  };
  CHECK(second("1F0 1I0 1W0", "") == "0:0 1:1100 3:1000 4:0");
  CHECK(second("1F0 1W0 1I0", "independent_w: 1\n") == "0:0 1:1100 3:100 4:0");
}

TEST_CASE("what I adds for W is there from I's end to W's") {
  Costs costs = coded_costs(2);
  costs.stage[1].stash_gradient = Bytes{7};
  const auto second = [&](const std::string& ops, const std::string& header) {
    return curve(straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: " + ops + "\n", header), costs,
                 MemoryKind::stash, 1);
  };
  CHECK(second("1F0 1I0 1W0", "") == "0:0 1:1100 3:1007 4:0");
  CHECK(second("1F0 1B0", "") == "0:0 1:1100 4:0");
  CHECK(second("1F0 1W0 1I0", "independent_w: 1\n") == "0:0 1:1100 3:100 4:0");
  // A first stage without I has no room of that kind.
  Costs one = coded_costs(1);
  one.stage[0].stash_gradient = Bytes{7};
  CHECK(curve(straight_text(1, 1, "gpu0: 0F0 0W0\n"), one, MemoryKind::stash) == "0:1100 2:0");
}

TEST_CASE("I and W each have their workspace") {
  Costs costs = coded_costs(1);
  costs.stage[0].workspace = Bytes{7};
  costs.stage[0].backward_workspace = Bytes{8};
  const std::string apart = straight_text(1, 2, "gpu0: 0F0 0I0 0W0 0F1 0B1\n");
  const auto workspaces = [&](const std::string& text) {
    return curve(text, costs, MemoryKind::workspace);
  };
  CHECK(workspaces(apart) == "0:7 1:8 2:7 4:8 6:0");
  costs.stage[0].input_grad_workspace = Bytes{9};
  costs.stage[0].weight_grad_workspace = Bytes{5};
  CHECK(workspaces(apart) == "0:7 1:9 2:5 3:7 4:8 6:0");
  CHECK(workspaces(straight_text(1, 1, "gpu0: 0F0 0W0\n")) == "0:7 1:8 2:0");
}

TEST_CASE("an F that keeps nothing has a workspace of its own, and its R that of F") {
  Costs costs = coded_costs(1);
  costs.stage[0].workspace = Bytes{7};
  costs.stage[0].recomputed_workspace = Bytes{900};
  CHECK(curve(straight_text(1, 2, "gpu0: 0F0 0F1 0R0 0B0 0B1\n"), costs, MemoryKind::workspace) ==
        "0:900 1:7 7:0");
}

TEST_CASE("a first stage without I frees all with its W") {
  CHECK(curve(straight_text(1, 1, "gpu0: 0F0 0W0\n"), coded_costs(1), MemoryKind::stash) ==
        "0:1100 2:0");
}

TEST_CASE("a recomputed micro-batch keeps its input until R makes the stash again") {
  CHECK(curve(straight_text(1, 2, "gpu0: 0F0 0F1 0R0 0B0 0R1 0B1\n"), coded_costs(1),
              MemoryKind::stash) == "0:10 1:20 2:1110 5:1100 8:0");
  const Costs costs = coded_costs(1);
  const test::Simulated ran =
      test::simulated(parse_program(straight_text(1, 2, "gpu0: 0F0 0F1 0R0 0B0 0R1 0B1\n")), costs);
  const MemoryProfile profile = memory_of(ran.program, costs, ran.timeline);
  CHECK(profile.stage[0].stash_peak == 1);
  CHECK(profile.device_stash_peak[0] == 1);
  CHECK(profile.device[0].peak == Bytes{1110});
  CHECK(profile.device[0].peak_at == Time{2});
}

TEST_CASE("an offloaded stash leaves when the copy ends and is back when the other begins") {
  Costs costs = coded_costs(1);
  costs.network.to_host[0].bandwidth = Bandwidth{1'100'000'000'000'000};  // 1 ps
  costs.network.from_host[0].bandwidth = Bandwidth{550'000'000'000'000};  // 2 ps
  CHECK(curve(straight_text(1, 2, "gpu0: 0F0 0OFFLOAD0 0F1 0PREFETCH0 0B0 0B1\n"), costs,
              MemoryKind::stash) == "0:1100 1:2200 6:1100 8:0");
  Costs slow = costs;
  slow.network.from_host[0].latency = Time{4};
  slow.network.to_host[0].latency = Time{3};
  CHECK(curve(straight_text(1, 2, "gpu0: 0F0 0OFFLOAD0 0F1 0PREFETCH0 0B0 0B1\n"), slow,
              MemoryKind::stash) == "0:1100 1:2200 2:1100 5:2200 13:1100 15:0");
}

TEST_CASE("a message is held from its making to its sending, and from its coming to its reading") {
  Costs costs = coded_costs(2, 4);
  costs.edges[0].activation = Bytes{5};
  costs.edges[0].gradient = Bytes{3};
  const std::string text =
      straight_text(2, 2,
                    "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                    "gpu1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1\n");
  // gpu0: F 0-1 and 1-2, sends 1-6 and 6-11. gpu1: receives 1-6 and 6-11, F 6-7 and 11-12, B 12-14
  // and 14-16, sends 14-17 and 17-20. gpu0: receives 14-17 and 17-20, B 17-19 and 20-22.
  CHECK(curve(text, costs, MemoryKind::buffers, 0) == "0:0 1:5 2:10 6:5 11:0 14:3 20:0");
  CHECK(curve(text, costs, MemoryKind::buffers, 1) == "0:0 1:5 11:0 14:3 16:6 17:3 20:0");
}

TEST_CASE("a tensor that its sender's stash holds, too, takes no room while it is sent") {
  Costs costs = coded_costs(2, 4);
  costs.edges[0] = {costs.edges[0].edge, Bytes{5}, Bytes{3}, Bytes{2}};
  const std::string messages = "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0\ngpu1: 1RECV_F0 1F0 1B0 1SEND_B0\n";
  // gpu0: F 0-1, send 1-6. gpu1: receive 1-6, F 6-7, B 7-9, send 9-12.
  CHECK(curve(straight_text(2, 1, messages), costs, MemoryKind::buffers, 0) ==
        "0:0 1:3 6:0 9:3 12:0");
  CHECK(curve(straight_text(2, 1, messages), costs, MemoryKind::buffers, 1) ==
        "0:0 1:5 6:0 9:3 12:0");
  // An F whose stash R rebuilds keeps nothing of its output.
  const std::string rebuilt =
      "gpu0: 0F0 0SEND_F0 0R0 0RECV_B0 0B0\ngpu1: 1RECV_F0 1F0 1B0 1SEND_B0\n";
  CHECK(curve(straight_text(2, 1, rebuilt), costs, MemoryKind::buffers, 0) ==
        "0:0 1:5 6:0 9:3 12:0");
}

TEST_CASE("what no message carries waits for its reader where that is") {
  Costs costs = coded_costs(2);
  costs.edges[0] = {costs.edges[0].edge, Bytes{5}, Bytes{3}, Bytes{2}};
  // Links take no time: what gpu0 makes at 2 is at gpu1 at once, which has a B to run until 4.
  const std::string apart = straight_text(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n");
  CHECK(curve(apart, costs, MemoryKind::buffers, 0) == "0:0");
  CHECK(curve(apart, costs, MemoryKind::buffers, 1) == "0:0 2:5 4:0");
  // Two stages on one device: the part that the maker's stash holds is counted there.
  const std::string together =
      "stageline-program 1\nmicrobatches: 1\nstage 0: a\nstage 1: a\na: 0F0 1F0 1B0 0B0\n";
  CHECK(curve(together, costs, MemoryKind::buffers) == "0:0");
  const std::string later =
      "stageline-program 1\nmicrobatches: 2\nstage 0: a\nstage 1: a\n"
      "a: 0F0 0F1 1F0 1F1 1B1 1B0 0B0 0B1\n";
  // F of stage 0: 0-1 and 1-2, F of stage 1: 2-3 and 3-4, B of stage 1: 4-6 and 6-8.
  CHECK(curve(later, costs, MemoryKind::buffers) == "0:0 1:3 3:0 6:3 10:0");
}

TEST_CASE("while an op runs, what it holds goes by its steps where something else changes") {
  Costs costs = coded_costs(2, 4);
  costs.edges[0] = {costs.edges[0].edge, Bytes{5}, Bytes{}, Bytes{}};
  StageCosts& second = costs.stage[1];
  second.forward = Time{10};
  second.workspace = Bytes{70};
  second.steps.forward = {{0.5, Bytes{-300}}, {0.8, Bytes{70}}, {1, Bytes{20}}};
  const std::string text =
      straight_text(2, 2,
                    "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                    "gpu1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1\n");
  // gpu1: receives 1-6 and 6-11, F 6-16 and 16-26. The second message comes from the start of the
  // first F on, so nothing changes while that runs.
  CHECK(curve(text, costs, MemoryKind::workspace, 1) == "0:0 6:70 30:0");
  // With a slower first stage it comes while the F runs.
  costs.stage[0].forward = Time{7};
  // gpu0: F 0-7 and 7-14. gpu1: receives 7-12 and 14-19, F 12-22 and 22-32: 14 is a fifth of the F.
  CHECK(curve(text, costs, MemoryKind::stash, 1) == "0:0 12:800 14:1100 22:2200 34:1100 36:0");
  CHECK(curve(text, costs, MemoryKind::workspace, 1) == "0:0 14:70 36:0");
}

TEST_CASE("workspace is there while an op of the stage runs") {
  Costs costs = coded_costs(2);
  costs.stage[0].workspace = Bytes{7};
  costs.stage[0].update = Time{2};
  CHECK(curve(straight_text(2, 1, "gpu0: 0F0 0B0 0U0\ngpu1: 1F0 1B0 1U0\n"), costs,
              MemoryKind::workspace) == "0:7 1:0 4:7 8:0");
}

TEST_CASE(
    "the halves of an overlapped pair hold their stashes at once, and their workspaces by turns") {
  Costs costs = coded_costs(1);
  costs.stage[0].workspace = Bytes{7};
  costs.stage[0].backward_workspace = Bytes{9};
  const std::string text = straight_text(1, 2, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n");
  CHECK(curve(text, costs, MemoryKind::stash) == "0:1100 1:2200 4:1100 6:0");
  CHECK(curve(text, costs, MemoryKind::workspace) == "0:7 1:9 6:0");
  const std::string turned = straight_text(1, 2, "gpu0: 0F0 (0B0;0F1)OVERLAP_F_B 0B1\n");
  CHECK(curve(turned, costs, MemoryKind::stash) == "0:1100 1:2200 4:1100 6:0");
  const test::Simulated ran = test::simulated(parse_program(turned), costs);
  CHECK(memory_of(ran.program, costs, ran.timeline).device_stash_peak[0] == 2);
}

TEST_CASE("a pair that hides transfers takes for its forward what its backward frees") {
  Costs costs = coded_costs(1);
  costs.stage[0].steps.forward = {{0.5, Bytes{-550}}, {1, Bytes{}}};
  costs.stage[0].steps.backward = {{0.25, Bytes{9}}, {1, Bytes{-550}}};
  const std::string text = straight_text(1, 2, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\n");
  CHECK(curve(text, costs, MemoryKind::stash) == "0:1100 1:2200 4:1100 6:0");
  // To a quarter of the pair -550 + 9, to a half -550 - 550, and then -550.
  costs.pair_overlap = 1;
  CHECK(curve(text, costs, MemoryKind::stash) == "0:1100 1:1659 3:1100 5:0");
  CHECK(curve(text, costs, MemoryKind::workspace) == "0:0");
  const std::string turned = straight_text(1, 2, "gpu0: 0F0 (0B0;0F1)OVERLAP_F_B 0B1\n");
  CHECK(curve(turned, costs, MemoryKind::stash) == "0:1100 1:1659 3:1100 5:0");
  costs.stage[0].steps.backward.clear();  // not known
  CHECK(curve(text, costs, MemoryKind::stash) == "0:1100 1:2200 3:1100 5:0");
}

TEST_CASE("weights, gradients and optimizer state are there all the time, on every replica") {
  Costs costs = uniform_costs(2, 3, Time{1}, Time{1}, Time{1});
  costs.stage[0].weights = Bytes{5};
  costs.stage[0].gradients = Bytes{50};
  costs.stage[0].optimizer_state = Bytes{500};
  const std::string text =
      "stageline-program 1\nmicrobatches: 2\nstage 0: a+b\nstage 1: b\n"
      "a: 0F0 0B0\nb: 0F1 1F0 1F1 1B0 1B1 0B1\nc:\n";
  const test::Simulated ran = test::simulated(parse_program(text), costs);
  const MemoryProfile profile = memory_of(ran.program, costs, ran.timeline);
  const auto use = [&](int device, MemoryKind kind) {
    return nth(nth(profile.device, device).at_end, kind);
  };
  CHECK(use(0, MemoryKind::weights) == Bytes{5});
  CHECK(use(1, MemoryKind::weights) == Bytes{6});
  CHECK(use(1, MemoryKind::gradients) == Bytes{51});
  CHECK(use(1, MemoryKind::optimizer) == Bytes{500});
  CHECK(profile.device[2].peak == Bytes{});
  CHECK(profile.stage[0].stash_peak == 1);
  CHECK(profile.stage[1].stash_peak == 2);
  CHECK(profile.device_stash_peak == std::vector<int>{1, 3, 0});
}

TEST_CASE("every kind of memory has a name") {
  std::string names;
  for (int kind = 0; kind < memory_kinds; ++kind) {
    names += std::string(name(static_cast<MemoryKind>(kind))) + " ";
  }
  CHECK(names == "weights versions gradients optimizer stash buffers workspace communication ");
}

}  // namespace
}  // namespace stageline::memory_tests
