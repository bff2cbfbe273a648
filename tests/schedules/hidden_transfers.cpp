// What does an overlapped pair hide, and in which order does Megatron-Core pair ops?
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "sim/op_time.hpp"
#include "tests/make.hpp"

namespace stageline::hidden_transfers_tests {
namespace {

// F 6 and B 12 on every stage, of which the experts' exchange takes so much.
Costs costs_with(int stages, int devices, Time forward, Time backward) {
  Costs costs = uniform_costs(stages, devices, Time{6}, Time{6}, Time{6});
  for (StageCosts& stage : costs.stage) {
    BlockingTimes& experts = nth(stage.blocking_by, Dimension::expert);
    experts.forward = forward;
    experts.backward = backward;
    experts.input_grad = backward;
    stage.blocking = experts;
  }
  return costs;
}

Time pair_of(const Costs& costs) {
  const Placement placement = straight_placement(1);
  return pair_time(costs, pair_half(costs, placement, op_of(OpKind::forward, 0, 1)),
                   pair_half(costs, placement, op_of(OpKind::backward, 0, 0)));
}

std::vector<std::string> lists_of(const std::string& schedule, int devices, int microbatches) {
  const ScheduleSpec chosen = test::spec(schedule);
  const int stages = test::stages_for(chosen, devices);
  const Problem problem = test::problem_for(
      chosen, devices, uniform_costs(stages, devices, Time{1}, Time{1}, Time{1}), microbatches);
  const Program program = chosen.scheduler->schedule(problem);
  std::vector<std::string> lists;
  for (const std::vector<Op>& ops : program.ops) {
    std::string& list = lists.emplace_back();
    for (const Op op : ops) list += (op.overlapped ? "(" : "") + print(op) + " ";
  }
  return lists;
}

TEST_CASE("a pair takes the compute of both ops, or their transfers, or the longer op") {
  CHECK(pair_of(costs_with(1, 1, Time{}, Time{})) == Time{18});  // nothing is compute under compute
  CHECK(pair_of(costs_with(1, 1, Time{2}, Time{3})) == Time{13});  // 4 + 9
  CHECK(pair_of(costs_with(1, 1, Time{5}, Time{8})) == Time{13});  // 5 + 8 of transfers
  CHECK(pair_of(costs_with(1, 1, Time{6}, Time{1})) == Time{12});  // B alone
}

TEST_CASE("compute beside transfers has the multiprocessors that these leave") {
  Costs costs = costs_with(1, 1, Time{2}, Time{2});
  CHECK(pair_of(costs) == Time{14});
  costs.transfer_share = 0.25;
  CHECK(pair_of(costs) == Time{15});
  costs.transfer_share = 1;
  CHECK(pair_of(costs) == Time{18});
}

TEST_CASE("a given share goes before what follows from the transfers") {
  Costs costs = costs_with(1, 1, Time{2}, Time{3});
  costs.pair_overlap = 0;
  CHECK(pair_of(costs) == Time{18});
  costs.pair_overlap = 1;
  CHECK(pair_of(costs) == Time{12});
}

TEST_CASE("collectives of other groups stay in their op's chain") {
  Costs costs = costs_with(1, 1, Time{}, Time{});
  for (const Dimension group : {Dimension::tensor, Dimension::context, Dimension::expert_tensor}) {
    StageCosts& stage = costs.stage[0];
    nth(stage.blocking_by, group).forward = Time{2};
    stage.blocking.forward += Time{2};
  }
  CHECK(pair_of(costs) == Time{18});
}

TEST_CASE("a slow device computes longer, and moves no slower") {
  Costs costs = costs_with(1, 1, Time{2}, Time{3});
  costs.pace = {2};
  const Placement placement = straight_placement(1);
  CHECK(task_time_on(costs, placement, op_of(OpKind::forward, 0, 1), op_of(OpKind::backward, 0, 0),
                     0) == Time{26});
}

TEST_CASE("DualPipe hides the exchange of experts, and no compute") {
  for (const std::string schedule : {"dualpipe", "dualpipe_v"}) {
    CAPTURE(schedule);
    const int stages = schedule == "dualpipe" ? 4 : 8;
    const auto span = [&](const Costs& costs) {
      return makespan(test::run_schedule(schedule, 4, costs, 12).times);
    };
    const Costs exchange = costs_with(stages, 4, Time{2}, Time{3});
    Costs apart = exchange;
    apart.pair_overlap = 0;
    CHECK(span(exchange) < span(apart));
    CHECK(span(costs_with(stages, 4, Time{}, Time{})) == span(apart));
  }
}

TEST_CASE("Megatron-Core's expert overlap warms up with one forward more, then pairs every one") {
  // combined_1f1b_schedule_for_no_pipelining.
  CHECK(lists_of("1f1b:overlap=experts", 1, 4) ==
        std::vector<std::string>{"0F0 (0F1 0B0 (0F2 0B1 (0F3 0B2 0B3 "});
  CHECK(lists_of("1f1b:overlap=experts", 1, 1) == std::vector<std::string>{"0F0 0B0 "});
  CHECK(lists_of("interleaved_1f1b:overlap=experts", 2, 4) ==
        std::vector<std::string>{
            "0F0 0F1 2F0 2F1 0F2 (0F3 2B0 (2F2 2B1 (2F3 0B0 0B1 2B2 2B3 0B2 0B3 ",
            "1F0 1F1 3F0 (3F1 3B0 (1F2 3B1 (1F3 1B0 (3F2 1B1 (3F3 3B2 3B3 1B2 1B3 "});
  CHECK(lists_of("1f1b:overlap=none", 3, 5) == lists_of("1f1b", 3, 5));
}

TEST_CASE("the order of expert overlap is that of the text in the data folder") {
  const char* const data = std::getenv("STAGELINE_DATA");
  std::ifstream in(std::filesystem::path(data == nullptr ? "" : data) /
                   "cases/programs/ep-overlap-p4-v2-m16.slp");
  if (!in) {
    MESSAGE("skipped: STAGELINE_DATA holds no cases/programs/ep-overlap-p4-v2-m16.slp");
    return;
  }
  std::stringstream text;
  text << in.rdbuf();
  const Program published = parse_program(text.str());
  const ScheduleSpec chosen = test::spec("interleaved_1f1b:overlap=experts");
  const Program made = chosen.scheduler->schedule(test::problem_for(
      chosen, 4, uniform_costs(8, 4, Time{1}, Time{1}, Time{1}), published.microbatches));
  CHECK(made.ops == published.ops);
  CHECK(made.placement == published.placement);
}

TEST_CASE("expert overlap takes one device, or interleaved stages of several") {
  const auto refused = [](const std::string& schedule, int devices) {
    try {
      const ScheduleSpec chosen = test::spec(schedule);
      chosen.scheduler->place(devices, chosen.knobs);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("1f1b:overlap=experts", 4) ==
        "1f1b: overlap=experts takes 1 device or interleaved stages, as Megatron-Core does, and "
        "there are 4 devices; take interleaved_1f1b:overlap=experts");
  CHECK(refused("interleaved_1f1b:overlap=experts", 1).find("take 1f1b:overlap=experts") !=
        std::string::npos);
  CHECK(refused("1f1b:overlap=experts", 1).empty());
  CHECK(refused("interleaved_1f1b:overlap=experts", 4).empty());
}

}  // namespace
}  // namespace stageline::hidden_transfers_tests
