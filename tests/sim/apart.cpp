// What happens where F, I and W of a stage live on different devices, by hand.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/index.hpp"
#include "tests/text.hpp"

namespace stageline::apart_tests {
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

// The stash over time, where it changes.
std::string stash_of(const DeviceMemory& memory) {
  std::string text;
  Bytes last{-1};
  for (const MemoryPoint& point : memory.curve) {
    const Bytes now = nth(point.use, MemoryKind::stash);
    if (now == last) continue;
    last = now;
    text += (text.empty() ? "" : " ") + std::to_string(point.at.count()) + ":" +
            std::to_string(now.count);
  }
  return text;
}

TEST_CASE("what is rebuilt on the backward's device travels as the stage's input") {
  Costs costs = slow_links(1, 2);
  costs.stage[0].boundary = Bytes{1};
  Program program = add_recompute(parse_program(forward_and_backward), {true});
  program = complete(program, costs);
  REQUIRE_NOTHROW(validate(program));
  const Timeline timeline = ran(program, costs);
  CHECK(test::contains(test::lanes(timeline), "gpu0 send: 0SEND_STASH0 1-2, 0SEND_STASH1 2-3\n"));
  CHECK(
      test::contains(test::lanes(timeline),
                     "gpu1 compute: 0R0 2-3, 0B0 3-8, 0U0 8-9, 0R1 9-10, 0B1 10-15, 0U1 15-16\n"));
  const MemoryProfile memory = memory_of(program, costs, timeline, Curves::all);
  CHECK(stash_of(memory.device[0]) == "0:1 1:2 2:1 3:0");
  CHECK(stash_of(memory.device[1]) == "0:0 1:1 2:4 8:1 9:3 15:0");
  CHECK(memory.stage[0].stash_peak == 1);
  // Of 4 bytes at most, one is the input of the second micro-batch, which waits for its R.
  const StashUse at_most{Bytes{2}, Bytes{1}, Bytes{0}, Bytes{1}};
  CHECK(std::any_of(memory.device[1].curve.begin(), memory.device[1].curve.end(),
                    [&](const MemoryPoint& point) { return point.stash == at_most; }));
  // The weights it was made with are those of the backward's device: one update old at least.
  for (const VersionRead& read : versions_read(program, timeline)) {
    if (read.op.kind != OpKind::recompute) continue;
    CHECK(read.device == 1);
    CHECK(read.version == read.op.microbatch);
  }
}

TEST_CASE("offloaded, a stash goes to the other device by way of the host") {
  Costs costs = slow_links(1, 2);
  for (auto* const routes : {&costs.network.to_host, &costs.network.from_host}) {
    for (Route& route : *routes) route.bandwidth = Bandwidth{1'000'000'000'000};
  }
  const Program program =
      complete(add_offload(parse_program(forward_and_backward), {true}, 1), costs);
  REQUIRE_NOTHROW(validate(program));
  CHECK_FALSE(test::contains(test::lists(program), "STASH"));
  const Timeline timeline = ran(program, costs);
  const std::string lanes = test::lanes(timeline);
  CHECK(test::contains(lanes, "0OFFLOAD0 1-4, 0OFFLOAD1 4-7\n"));
  CHECK(test::contains(lanes, "0PREFETCH0 4-7, 0PREFETCH1 7-10\n"));
  CHECK(test::contains(lanes, "gpu1 compute: 0B0 7-12, 0U0 12-13, 0B1 13-18, 0U1 18-19\n"));
  const MemoryProfile memory = memory_of(program, costs, timeline, Curves::all);
  CHECK(stash_of(memory.device[0]) == "0:3 1:6 4:3 7:0");
  CHECK(stash_of(memory.device[1]) == "0:0 4:3 7:6 12:3 18:0");
  CHECK(stash_of(memory.host[0]) == "1:3 4:6 7:3 10:0");
}

TEST_CASE(
    "several readers: each rebuilds its part, and the host keeps an input until the last has it") {
  // I in two parts on gpu0 and gpu1, W on gpu2.
  const std::string text =
      "stageline-program 1\nmicrobatches: 1\nweights: stash\n"
      "stage 0: gpu0\nstage 1: F=gpu1 I=gpu0+gpu1 share=0.25+0.75 W=gpu2\nindependent_w: 1\n"
      "gpu0: 0F0 1I0 0B0\ngpu1: 1F0 1I0.1\ngpu2: 1W0\n";
  Costs costs = slow_links(2, 3);
  costs.stage[1].boundary = Bytes{2};
  costs.stage[1].stash_input_grad = Bytes{4};
  costs.stage[1].input_grad = Time{8};
  for (Route& route : costs.network.from_host) route.bandwidth = Bandwidth{1'000'000'000'000};
  const Program again = add_recompute(parse_program(text), {false, true});
  const Program sent = complete(again, costs);
  REQUIRE_NOTHROW(validate(sent));
  // F at 2; the input is 2 bytes to either reader, one after the other.
  CHECK(test::contains(test::lanes(ran(sent, costs)),
                       "gpu1 send: 1SEND_STASH0 3-5, 1SEND_STASH0.1 5-7, 1SEND_B0.1 "));
  CHECK(test::contains(test::lanes(ran(sent, costs)), "1R0 5-6, 1I0 6-8, "));
  CHECK(test::contains(test::lanes(ran(sent, costs)), "1R0.1 3-4, 1I0.1 4-10"));
  CHECK(test::contains(test::lanes(ran(sent, costs)), "1R0.2 7-8, 1W0 8-11"));
  const MemoryProfile by_message = memory_of(sent, costs, ran(sent, costs), Curves::all);
  CHECK(stash_of(by_message.device[1]) == "0:0 2:2 3:8 7:6 10:0");  // each reader makes all of it
  CHECK(stash_of(by_message.device[2]) == "0:0 5:2 7:6 11:0");
  const Program copied = complete(add_offload(again, {false, true}, 1), costs);
  REQUIRE_NOTHROW(validate(copied));
  const MemoryProfile by_host = memory_of(copied, costs, ran(copied, costs), Curves::all);
  CHECK(stash_of(by_host.host[0]) == "3:2 5:0");
  for (const DeviceMemory& device : by_host.device) {
    CHECK(nth(device.at_end, MemoryKind::stash) == Bytes{});
  }
}

TEST_CASE("each device holds what its own ops and messages read, and its copy of the weights") {
  const Costs costs = slow_links(1, 2);
  const Program program = complete(parse_program(forward_and_backward), costs);
  const MemoryProfile memory = memory_of(program, costs, ran(program, costs), Curves::all);
  CHECK(stash_of(memory.device[0]) == "0:3 1:6 4:3 7:0");       // until its message has gone
  CHECK(stash_of(memory.device[1]) == "0:0 1:3 4:6 9:3 15:0");  // from its arrival until B ends
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

TEST_CASE(
    "an update makes new weights beside those that a message carries or a backward may read") {
  Costs costs = slow_links(1, 2);
  costs.stage[0].weights = Bytes{8};  // U0 at 9-10 and U1 at 15-16, SENDs at 10-18 and 18-26
  const auto versions_held = [&](const std::string& rule, int device) {
    Program program = parse_program(forward_and_backward);
    program.settings.weights = rule == "latest" ? WeightRule::latest : WeightRule::stash;
    const Program whole = complete(program, costs);
    const MemoryProfile memory = memory_of(whole, costs, ran(whole, costs), Curves::all);
    std::string text;
    Bytes before{};
    for (const MemoryPoint& point : nth(memory.device, device).curve) {
      CHECK(nth(point.use, MemoryKind::buffers) == Bytes{});
      const Bytes held = nth(point.use, MemoryKind::versions);
      if (held != before) text += fmt::format("{}:{} ", point.at.count(), held.count);
      before = held;
    }
    return text;
  };
  CHECK(versions_held("latest", 1) == "15:8 18:0 ");
  // Both backwards read the first version, and that none to come will is not known; the second is
  // still sent when U1 runs.
  CHECK(versions_held("stash", 1) == "9:8 15:16 16:8 18:0 ");
  // What arrives has room of its own, and waits there.
  CHECK(versions_held("latest", 0).empty());
  CHECK(versions_held("stash", 0).empty());
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
  CHECK(takes("1SEND_STASH0") == 6);
  CHECK(takes("0SEND_STASH0") == 3);
}

TEST_CASE(
    "where I and W are apart, each holds the stash and the gradient until its last op there") {
  // I in two parts on gpu0 and gpu1, W behind the second.
  const std::string text =
      "stageline-program 1\nmicrobatches: 1\nweights: stash\n"
      "stage 0: gpu0\nstage 1: F=gpu1 I=gpu0+gpu1 share=0.25+0.75 W=gpu1\nstage 2: gpu2\n"
      "independent_w: 1\n"
      "gpu0: 0F0 1I0 0B0\ngpu1: 1F0 1I0.1 1W0\ngpu2: 2F0 2B0\n";
  Costs costs = slow_links(3, 3);
  for (StageCosts& stage : costs.stage) {
    stage.steps = {};
    stage.workspace = Bytes{1};
    stage.backward_workspace = Bytes{40};
    stage.input_grad_workspace = Bytes{60};
    stage.divided_input_grad_workspace = Bytes{20};
  }
  costs.edges[1].gradient = Bytes{8};
  const Program program = complete(parse_program(text), costs);
  REQUIRE_NOTHROW(validate(program));
  const Timeline timeline = ran(program, costs);
  const MemoryProfile memory = memory_of(program, costs, timeline, Curves::all);
  const auto while_runs = [&](int device, const char* const op, MemoryKind kind) {
    const Spans& lane = timeline.lane(device, LaneKind::compute);
    const auto span = std::find_if(lane.begin(), lane.end(),
                                   [&](const Span& one) { return print(one.op) == op; });
    REQUIRE(span != lane.end());
    Bytes held{};
    for (const MemoryPoint& point : nth(memory.device, device).curve) {
      if (point.at <= span->start) held = nth(point.use, kind);
    }
    return held.count;
  };
  CHECK(while_runs(0, "1I0", MemoryKind::workspace) == 5);  // a quarter of what the parts hold
  CHECK(while_runs(1, "1I0.1", MemoryKind::workspace) == 15);
  CHECK(while_runs(1, "1W0", MemoryKind::workspace) == 40);  // it takes the gradient with it
  CHECK(while_runs(1, "1I0.1", MemoryKind::buffers) == 8);
  CHECK(while_runs(1, "1W0", MemoryKind::buffers) == 1);  // the first stage's, on its way
  const std::int64_t stash = costs.stage[1].stash().count;
  CHECK(while_runs(0, "1I0", MemoryKind::stash) == stash + costs.stage[0].stash().count);
  CHECK(while_runs(1, "1W0", MemoryKind::stash) == stash);
  for (const DeviceMemory& device : memory.device) {
    CHECK(nth(device.at_end, MemoryKind::stash) == Bytes{});
    CHECK(nth(device.at_end, MemoryKind::buffers) == Bytes{});
  }
}

TEST_CASE("a mean of the steps is held beside the weights, and old weights are made from it") {
  const std::string text =
      "stageline-program 1\nmicrobatches: 2\nweights: stash\ncorrection: moving_average\n"
      "stage 0: gpu0\ndelays: 1\ngpu0: 0F0 0F1 0B0 0U0 0B1 0U1\n";
  Costs costs = slow_links(1, 1);
  costs.stage[0].steps = {};
  costs.stage[0].workspace = Bytes{1};
  costs.stage[0].weights = costs.stage[0].gradients = Bytes{10};
  const Program program = parse_program(text);
  const auto peak_of = [&] {
    return memory_of(program, costs, ran(program, costs), Curves::all).device[0].peak.count;
  };
  // Weights, gradients, the mean and the optimizer's state; a stash; and during U new weights and a
  // new mean.
  CHECK(peak_of() == 10 + 10 + 10 + 8 + 3 + 1 + 2 * 10);
  // Two stashes; and during B the weights that its forward read.
  costs.stage[0].backward_workspace = Bytes{100};
  CHECK(peak_of() == 10 + 10 + 10 + 8 + 6 + 100 + 10);
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
        "gpu0, op 2 (1R0): the op belongs on gpu1, where its stage is placed");
  CHECK(with("F=gpu0 I=gpu1 W=gpu1", "gpu0: 0F0 1F0 0B0\ngpu1: 1R0.1 1B0\n") ==
        "gpu1, op 0 (1R0.1): the stage has no such part");
  for (const char* const op : {"1U0.1", "1U0.5", "1REDUCE_GRAD0.1"}) {
    CHECK(with("F=gpu0 I=gpu1 W=gpu1", fmt::format("gpu0: 0F0 1F0 0B0\ngpu1: 1B0 {}\n", op)) ==
          fmt::format("gpu1, op 1 ({}): the stage has no such part", op));
  }
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
}  // namespace stageline::apart_tests
