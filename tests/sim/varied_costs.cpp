// Does every op take the time and the bytes of its own micro-batch?
#include "sim/varied_costs.hpp"

#include <doctest/doctest.h>

#include "sim/analysis/memory.hpp"
#include "sim/base/index.hpp"
#include "tests/text.hpp"

namespace stageline::varied_costs_tests {
namespace {

using test::complaint;
using test::lanes;
using test::straight_text;

const std::string one_f_one_b = straight_text(2, 3,
                                              "gpu0: 0F0 0F1 0B0 0F2 0B1 0B2\n"
                                              "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2\n",
                                              "costs: 1 2.5 0.5\n");

// F 10, B 20.
Costs tens(int stages) {
  return uniform_costs(stages, stages, Time{10}, Time{10}, Time{10}, Time{});
}

test::Simulated run(const std::string& text, const Costs& costs) {
  const Program program = parse_program(text);
  return test::simulated(program, scaled_by_microbatch(costs, program.settings.costs));
}

}  // namespace

TEST_CASE("1F1B of unequal micro-batches, by hand") {
  CHECK(lanes(run(one_f_one_b, tens(2)).timeline) ==
        "gpu0 compute: 0F0 0-10, 0F1 10-35, 0B0 40-60, 0F2 60-65, 0B1 115-165, 0B2 165-175\n"
        "gpu1 compute: 1F0 10-20, 1B0 20-40, 1F1 40-65, 1B1 65-115, 1F2 115-120, 1B2 120-130\n");
}

TEST_CASE("the text of unequal micro-batches says what it was read from") {
  const Program program = parse_program(one_f_one_b);
  CHECK(program.settings.costs == std::vector<double>{1, 2.5, 0.5});
  CHECK(print(program).find("\ncosts: 1 2.5 0.5\n") != std::string::npos);
  CHECK(parse_program(print(program)) == program);
}

TEST_CASE("equal factors are what all costs multiplied are, and ones are none") {
  const Costs plain = tens(2);
  const Costs ones = scaled_by_microbatch(plain, {1, 1, 1});
  CHECK(ones.kinds.empty());
  CHECK(ones.stage == plain.stage);
  const Costs twice = scaled_by_microbatch(plain, {2, 2});
  const Costs whole = uniform_costs(2, 2, Time{20}, Time{20}, Time{20}, Time{});
  CHECK(twice.kinds.size() == 1);
  CHECK(twice.stage[0].forward == whole.stage[0].forward);
  CHECK(twice.stage[0].backward == whole.stage[0].backward);
  CHECK(twice.stage[0].stash() == Bytes{4});
  CHECK(twice.stage[0].weights == plain.stage[0].weights);
}

TEST_CASE("all stages' times are the mean, rounded down, and their bytes the most") {
  Costs costs = tens(1);
  costs.stage[0].boundary = Bytes{7};
  costs.edges.clear();
  const Costs varied = scaled_by_microbatch(costs, {1, 1, 0.26});
  CHECK(varied.kind_of == std::vector<std::uint16_t>{0, 0, 1});
  CHECK(varied.stage[0].forward == Time{7});  // (10 + 10 + 3) / 3
  CHECK(varied.stage[0].backward == Time{14});
  CHECK(varied.stage[0].boundary == Bytes{7});
  CHECK(varied.of(op_of(OpKind::forward, 0, 2)).boundary == Bytes{2});
}

TEST_CASE("messages and stashes are as large as their micro-batch") {
  Costs costs = uniform_costs(2, 2, Time{10}, Time{10}, Time{10}, Time{4});
  for (StageCosts& stage : costs.stage) {
    stage.stash_input_grad = Bytes{100};
    stage.stash_weight_grad = Bytes{0};
    stage.weights = stage.gradients = Bytes{};
  }
  const std::string text =
      straight_text(2, 2,
                    "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                    "gpu1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1\n",
                    "costs: 1 3\n");
  const auto ran = run(text, costs);
  CHECK(lanes(ran.timeline).find("gpu0 send: 0SEND_F0 10-14, 0SEND_F1 40-52\n") !=
        std::string::npos);
  const Costs varied = scaled_by_microbatch(costs, {1, 3});
  const MemoryProfile memory = memory_of(ran.program, varied, ran.timeline, Curves::all);
  CHECK(nth(memory.device, 0).stash_peak == Bytes{400});
}

TEST_CASE("a replicated pipeline repeats the costs of its micro-batches") {
  const Program two = replicated(parse_program(one_f_one_b), 2);
  CHECK(two.settings.costs == std::vector<double>{1, 1, 2.5, 2.5, 0.5, 0.5});
}

TEST_CASE("a replicated pipeline repeats the lengths of its micro-batches") {
  Program program = parse_program(one_f_one_b);
  program.settings.costs.clear();
  program.settings.lengths = {{8}, {4, 4}, {2}};
  const std::vector<Documents> both{{8}, {8}, {4, 4}, {4, 4}, {2}, {2}};
  CHECK(replicated(program, 2).settings.lengths == both);
}

TEST_CASE("costs that cannot be are refused where they stand") {
  const auto refused = [](const std::string& costs) {
    return complaint<ProgramError>(
        [&] { validate(parse_program(straight_text(1, 2, "gpu0: 0F0 0F1 0B0 0B1\n", costs))); });
  };
  CHECK(refused("costs: 1 -2\n").find("line 3, column 10") != std::string::npos);
  CHECK(refused("costs: 1 x\n").find("(not \"x\")") != std::string::npos);
  CHECK(refused("costs: 1 2 3\n").find("there are 3, and 2 micro-batches") != std::string::npos);
  CHECK(refused("costs: 1 2\n").empty());
  CHECK(refused("lengths: 1 2\n").empty());
  CHECK(refused("lengths: 1 2 3\n").find("there are 3, and 2 micro-batches") != std::string::npos);
  CHECK(refused("lengths: 1 2\ncosts: 1 2\n").find("leave one of them out") != std::string::npos);
  CHECK(refused("slices: 1 2\n").find("sequence_chunks is 1") != std::string::npos);
  CHECK_THROWS_AS(scaled_by_microbatch(tens(1), {1, -1}), UsageError);
  CHECK_THROWS_AS(scaled_by_microbatch(tens(1), {1e300}), UsageError);
}

}  // namespace stageline::varied_costs_tests
