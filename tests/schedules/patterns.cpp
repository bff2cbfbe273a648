// Does lowering by patterns give the task graph that the rules give op by op?
#include <doctest/doctest.h>

#include "sim/lower/lowering.hpp"
#include "tests/make.hpp"
#include "tests/random_program.hpp"

namespace stageline::patterns_tests {
namespace {

void check_same(const TaskGraph& a, const TaskGraph& b) {
  CHECK((a.op == b.op));
  CHECK((a.partner == b.partner));
  CHECK((a.lane == b.lane));
  CHECK((a.path_of == b.path_of));
  CHECK((a.duration == b.duration));
  CHECK((a.need_begin == b.need_begin));
  CHECK((a.need == b.need));
  CHECK((a.lane_begin == b.lane_begin));
  CHECK((a.lane_task == b.lane_task));
  CHECK((a.lanes == b.lanes));
  CHECK((a.paths == b.paths));
  CHECK((a.resources == b.resources));
  CHECK((a.devices == b.devices));
}

// The graph, or the error that lowering ends with.
struct Lowered {
  TaskGraph graph;
  std::string error;
};

Lowered lowered(const Program& program, const Costs& costs, bool patterns) {
  try {
    return {Lowering(program, costs, patterns).lower(), ""};
  } catch (const std::runtime_error& error) {
    return {{}, error.what()};
  }
}

void check_program(const Program& program, const Costs& costs) {
  const Lowered by_pattern = lowered(program, costs, true);
  const Lowered one_by_one = lowered(program, costs, false);
  CHECK(by_pattern.error == one_by_one.error);
  check_same(by_pattern.graph, one_by_one.graph);
}

TEST_CASE("patterns and single ops lower every scheduler's programs alike") {
  std::mt19937 random(11);
  for (const Scheduler* const scheduler : schedulers()) {
    const std::string name(scheduler->name);
    CAPTURE(name);
    const ScheduleSpec spec = test::spec(name);
    for (const int devices : {2, 4}) {
      for (const int microbatches : {4, 12}) {
        for (const Messages messages : {Messages::async, Messages::blocking, Messages::batched}) {
          for (const bool transfer : {false, true}) {
            const Costs costs =
                test::random_costs(random, test::stages_for(spec, devices), devices, transfer);
            const Problem problem = test::problem_for(spec, devices, costs, microbatches, 3);
            Program program;
            try {
              program = spec.scheduler->schedule(problem);
            } catch (const UsageError&) {
              continue;  // not with so many devices or micro-batches
            }
            program.settings.messages = messages;
            check_program(complete(std::move(program), costs), costs);
          }
        }
      }
    }
  }
}

TEST_CASE("patterns and single ops lower random programs alike, and find the same errors") {
  test::RandomPrograms programs(12);
  std::mt19937 random(13);
  for (int i = 0; i < 600; ++i) {
    CAPTURE(i);
    test::RandomProgram drawn = programs.make(i % 2 == 0);
    drawn.program.settings.messages = static_cast<Messages>(i % 3);
    Program program = complete(std::move(drawn.program), drawn.costs);
    check_program(program, drawn.costs);
    // Out of order it may deadlock, and without an op another may need what no op makes.
    std::vector<Op>& list = program.ops[random() % program.ops.size()];
    if (list.size() < 2 || program.settings.messages != Messages::async) continue;
    const auto pick = [&] { return random() % list.size(); };
    if (std::any_of(list.begin(), list.end(), [](Op op) { return op.overlapped != 0; })) continue;
    std::swap(list[pick()], list[pick()]);
    check_program(program, drawn.costs);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(pick()));
    check_program(program, drawn.costs);
  }
}

}  // namespace
}  // namespace stageline::patterns_tests
