// What happens where F, I and W of a stage live on different devices, by hand.
#include <doctest/doctest.h>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/index.hpp"
#include "tests/text.hpp"

namespace stageline {
namespace {

const std::string forward_and_backward =
    "stageline-program 1\nmicrobatches: 2\nweights: latest\n"
    "stage 0: F=gpu0 I=gpu1 W=gpu1\n"
    "gpu0: 0F0 0F1\ngpu1: 0B0 0B1\n";

// F = 1, I = 2, W = 3 (B = 5), U = 1; a byte takes a picosecond.
Costs slow_links(int stages, int devices) {
  Costs costs = uniform_costs(stages, devices, Time{1}, Time{2}, Time{3}, Time{1});
  for (StageCosts& stage : costs.stage) {
    stage.update = Time{1};
    stage.weights = Bytes{4};
    stage.gradients = Bytes{4};
    stage.optimizer_state = Bytes{8};
    stage.stash_input_grad = Bytes{1};
    stage.stash_weight_grad = Bytes{2};
  }
  return costs;
}

Timeline ran(const Program& program, const Costs& costs) {
  const TaskGraph graph = compile(program, costs);
  return timeline_of(program, graph, simulate(graph));
}

std::string refusal(const std::string& text) {
  return test::complaint<ProgramError>([&] { validate(parse_program(text)); });
}

TEST_CASE("stash and weights travel: messages are written even where links are free") {
  const Program program = complete(parse_program(forward_and_backward), slow_links(1, 2));
  REQUIRE_NOTHROW(validate(program));
  CHECK(test::lists(program) ==
        "gpu0: 0F0 0SEND_STASH0 0RECV_WEIGHTS0 0F1 0SEND_STASH1 0RECV_WEIGHTS1\n"
        "gpu1: 0RECV_STASH0 0B0 0U0 0SEND_WEIGHTS0 0RECV_STASH1 0B1 0U1 0SEND_WEIGHTS1\n");
  CHECK(test::lanes(ran(program, slow_links(1, 2))) ==
        "gpu0 compute: 0F0 0-1, 0F1 1-2\n"
        "gpu0 send: 0SEND_STASH0 1-4, 0SEND_STASH1 4-7\n"
        "gpu0 receive: 0RECV_WEIGHTS0 10-14, 0RECV_WEIGHTS1 16-20\n"
        "gpu1 compute: 0B0 4-9, 0U0 9-10, 0B1 10-15, 0U1 15-16\n"
        "gpu1 send: 0SEND_WEIGHTS0 10-14, 0SEND_WEIGHTS1 16-20\n"
        "gpu1 receive: 0RECV_STASH0 1-4, 0RECV_STASH1 4-7\n");
  Program off = parse_program(forward_and_backward);
  off.settings.weights_transfer = false;
  CHECK(test::lists(complete(off, slow_links(1, 2))).find("WEIGHTS") == std::string::npos);
}

TEST_CASE("a delay makes F wait for the weights, and the update for F") {
  Program program = parse_program(forward_and_backward);
  program.microbatches = 3;
  program.ops[0].push_back({OpKind::forward, 0, 0, 0, 2});
  program.ops[1].push_back({OpKind::backward, 0, 0, 0, 2});
  program.settings.delay = {1};
  const Costs costs = slow_links(1, 2);
  const Program whole = complete(program, costs);
  // F2 waits for the weights of update 0; update 0 for F1, which has long ended.
  CHECK(test::lanes(ran(whole, costs)).find("0F2 14-15") != std::string::npos);
  const std::vector<StageVersions> versions = versions_of(whole, ran(whole, costs));
  CHECK(versions[0].staleness_max == 1);
  // Without it F2 would have read the first weights.
  program.settings.delay.clear();
  const Program free = complete(program, costs);
  CHECK(versions_of(free, ran(free, costs))[0].staleness_max == 2);
}

TEST_CASE("a window makes F wait for a backward") {
  Program program = parse_program(forward_and_backward);
  program.settings.window = {1};
  const Costs costs = slow_links(1, 2);
  CHECK(test::lanes(ran(complete(program, costs), costs)).find("0F1 9-10") != std::string::npos);
}

TEST_CASE("each device holds what its own ops and messages read, and its copy of the weights") {
  const Costs costs = slow_links(1, 2);
  const Program program = complete(parse_program(forward_and_backward), costs);
  const MemoryProfile memory = memory_of(program, costs, ran(program, costs), Curves::all);
  const auto stash = [&](int device) {
    std::string text;
    Bytes last{-1};
    for (const MemoryPoint& point : nth(memory.device, device).curve) {
      const Bytes now = nth(point.use, MemoryKind::stash);
      if (now == last) continue;
      last = now;
      text += (text.empty() ? "" : " ") + std::to_string(point.at.count()) + ":" +
              std::to_string(now.count);
    }
    return text;
  };
  CHECK(stash(0) == "0:3 1:6 4:3 7:0");       // until its message has gone
  CHECK(stash(1) == "0:0 1:3 4:6 9:3 15:0");  // from its arrival until B ends
  for (const DeviceMemory& device : memory.device) {
    for (const MemoryPoint& point : device.curve) {
      const Bytes all = nth(point.use, MemoryKind::stash);
      const std::int64_t stashes = all.count / costs.stage[0].stash().count;
      CHECK(nth(point.stash, StashPart::input_grad) == costs.stage[0].stash_input_grad * stashes);
      CHECK(nth(point.stash, StashPart::weight_grad) == costs.stage[0].stash_weight_grad * stashes);
    }
  }
  const auto held = [&](int device, MemoryKind kind) {
    return nth(nth(memory.device, device).at_end, kind);
  };
  CHECK(held(0, MemoryKind::weights) == Bytes{8});  // new ones beside those in use
  CHECK(held(1, MemoryKind::weights) == Bytes{4});
  CHECK(held(0, MemoryKind::gradients) == Bytes{0});
  CHECK(held(1, MemoryKind::optimizer) == Bytes{8});
}

TEST_CASE("parts of I send their shares to whoever reads the gradient") {
  const std::string text =
      "stageline-program 1\nmicrobatches: 1\nweights: stash\n"
      "stage 0: F=gpu0 W=gpu2\n"
      "stage 1: F=gpu1 I=gpu0+gpu1 share=0.25+0.75 W=gpu1\n"
      "independent_w: 0 1\n"
      "gpu0: 0F0 1I0\ngpu1: 1F0 1I0.1 1W0\ngpu2: 0W0\n";
  Costs costs = slow_links(2, 3);
  costs.edges[0].gradient = Bytes{8};
  costs.stage[1].input_grad = Time{8};
  costs.stage[1].stash_input_grad = Bytes{4};
  Program program = parse_program(text);
  program.placement.stage[0].input_grad = program.placement.stage[0].weight_grad;
  program = complete(program, costs);
  REQUIRE_NOTHROW(validate(program));
  CHECK(parse_program(print(program)) == program);
  CHECK(test::lanes(ran(program, costs)).find("gpu0 compute: 0F0 0-1, 1I0 ") != std::string::npos);
  const auto takes = [&](const char* const op) {
    return duration_of(program, costs, *parse_op(op)).count();
  };
  CHECK(takes("1I0") == 2);
  CHECK(takes("1I0.1") == 6);
  CHECK(takes("1SEND_B0") == 2);
  CHECK(takes("1SEND_B0.1") == 6);
  CHECK(takes("1SEND_STASH0") == 1);  // a quarter of what I reads
  CHECK(takes("0SEND_STASH0") == 3);
}

TEST_CASE("lines of the program say delays, windows, clock and copies, and read as they print") {
  const std::string lines =
      "delays: 2 -\nwindows: - 5\nclock: lockstep\ncopies: half\nweights_transfer: off\n";
  const Program program =
      parse_program(test::straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\n", lines));
  CHECK(program.settings.delay == std::vector<int>{2, -1});
  CHECK(program.settings.window == std::vector<int>{0, 5});
  CHECK(print(program).find(lines) != std::string::npos);
  CHECK(parse_program(print(program)) == program);
  const auto broken = [](const std::string& line) {
    return test::complaint<ProgramError>([&] {
      parse_program(test::straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\n", line + "\n"));
    });
  };
  CHECK(broken("delays: 2") ==
        "line 3, column 9: there are 2 stages, but 1 numbers (a dash for none)");
  CHECK(broken("clock: fast") == "line 3, column 8: \"fast\" is not one of free, lockstep");
  CHECK(broken("copies: some") ==
        "line 3, column 9: \"some\" is not one of free, issued, full, half, blocking");
  CHECK(broken("weights_transfer: no") ==
        "line 3, column 19: weights_transfer is on or off (not \"no\")");
}

TEST_CASE("what cannot travel is refused") {
  const auto with = [](const std::string& place, const std::string& ops,
                       const std::string& header = "") {
    return refusal("stageline-program 1\nmicrobatches: 1\nweights: stash\n" + header +
                   "stage 0: gpu0\nstage 1: " + place + "\n" + ops);
  };
  CHECK(
      with("F=gpu0 I=gpu1 W=gpu0", "gpu0: 0F0 1F0 0B0 1W0\ngpu1: 1I0\n") ==
      "gpu0, op 3 (1W0): gradients inside a stage are not sent: a stage whose W is on another device than "
      "its I must be independent_w (one layer)");
  CHECK(with("F=gpu0 I=gpu1 W=gpu0", "gpu0: 0F0 1F0 0B0 1W0\ngpu1: 1I0\n", "independent_w: 1\n") ==
        "");
  CHECK(with("F=gpu0 I=gpu1 W=gpu0", "gpu0: 0F0 1F0 0B0 1B0\ngpu1:\n") ==
        "gpu0, op 3 (1B0): I and W of the stage are on different devices; write I and W");
  CHECK(with("F=gpu0 I=gpu1 W=gpu1", "gpu0: 0F0 1F0 1R0 0B0\ngpu1: 1B0\n") ==
        "gpu0, op 2 (1R0): a stage with its backward on another device cannot be recomputed");
  CHECK(with("F=gpu0+gpu1 I=gpu1 W=gpu1", "gpu0: 0F0 1F0 0B0\ngpu1: 1B0\n") ==
        "stage 1: a stage with replicas has F, I and W of each on one device; W has one device");
  CHECK(with("F=gpu0 I=gpu0+gpu1 share=0.5+0.25 W=gpu1",
             "gpu0: 0F0 1F0 0B0 1I0\ngpu1: 1I0.1 1W0\n") ==
        "stage 1: I on 2 devices needs as many shares, which sum to 1 (they are 2: 0.75)");
}

TEST_CASE("a host that relays nothing is for offloading alone") {
  const LinkSpec link{Bandwidth{1'000'000'000'000}, Time{10}};
  const LinkSpec host{Bandwidth{2'000'000'000'000}, Time{1}};
  const Network network = network_of(uniform_cluster(2, link, std::nullopt, host, Bytes{64}));
  CHECK(network.between(0, 1).latency == Time{10});  // and not 2, through the host
  CHECK(network.between(0, 1).bandwidth == link.bandwidth);
  CHECK(network.to_host[1].bandwidth == host.bandwidth);
  CHECK(network.from_host[0].latency == Time{1});
  CHECK(network.hosts == std::vector<std::string>{"host"});
  const Network free = network_of(uniform_cluster(2, std::nullopt, std::nullopt, host));
  CHECK(free.between(0, 1).is_free());
  CHECK_FALSE(free.to_host[0].is_free());
}

}  // namespace
}  // namespace stageline
