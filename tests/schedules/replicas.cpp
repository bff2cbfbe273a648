// Are replicated pipelines of every scheduler valid, and does each replica run as one alone does?
#include "tests/schedules/replicas.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::replicas_tests {
namespace {

bool refused_by_design(const Program& program) {
  const auto& stages = program.placement.stage;
  const auto& delay = program.settings.delay;
  return std::any_of(stages.begin(), stages.end(),
                     [](const StagePlace& place) { return place.apart(); }) ||
         std::any_of(delay.begin(), delay.end(), [](int one) { return one >= 0; }) ||
         program.settings.clock == Clock::lockstep || program.settings.sequence_chunks > 1;
}

void check_replicas(const Program& program, const Costs& costs, bool transfer, int replicas) {
  CHECK(replicated(program, 1) == program);
  const Program several = replicated(program, replicas);
  REQUIRE_NOTHROW(validate(several));
  CHECK(parse_program(print(several)) == several);
  CHECK(add_updates(several) == replicated(add_updates(program), replicas));
  const Program one = complete(program, costs);
  const Costs costs_of_all = test::side_by_side(costs, replicas);
  const Program all = complete(several, costs_of_all);
  REQUIRE_NOTHROW(validate(all));
  CHECK(parse_program(print(all)) == all);
  REQUIRE_NOTHROW(validate(replicated(one, replicas)));
  // Where links take time, a reduction takes its turn behind messages, which one pipeline alone has
  // not, and messages that ask for a port at the same time take turns by their task's number.
  if (transfer) return;
  CHECK(test::first_to_differ(test::starts_of(one, costs), test::starts_of(all, costs_of_all),
                              static_cast<int>(program.devices.size()), replicas) == "");
}

}  // namespace

TEST_CASE("every scheduler's pipeline has replicas, each of which runs as it does alone") {
  std::mt19937 random(18);
  std::map<std::string, int> held;
  std::map<std::string, int> refused;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      const std::string name(spec.scheduler->name);
      for (const int microbatches : {1, 3, 4, 8}) {
        for (const bool transfer : {false, true}) {
          if (held.count(name) > 0 && !test::chosen(random, 6)) continue;
          Program program;
          Costs costs;
          try {
            costs = test::random_costs(random, test::stages_for(spec, devices), devices, transfer);
            program = spec.scheduler->schedule(
                test::problem_for(spec, devices, costs, microbatches, 1 + microbatches % 2));
          } catch (const UsageError&) {
            continue;  // a size that this schedule does not do
          }
          const int replicas = 2 + static_cast<int>(random() % 2);
          CAPTURE(spelled(spec));
          CAPTURE(devices);
          CAPTURE(microbatches);
          CAPTURE(replicas);
          if (refused_by_design(program)) {
            CHECK_THROWS_AS(replicated(program, replicas), UsageError);
            ++refused[name];
            continue;
          }
          check_replicas(program, costs, transfer, replicas);
          ++held[name];
        }
      }
    }
  }
  // Those that split the roles of stages, or count the delay of weights in micro-batches.
  for (const Scheduler* const scheduler : schedulers()) {
    const std::string name(scheduler->name);
    const bool never = name == "stale_weights" || name == "layerpipe" || name == "pipefb";
    CHECK_MESSAGE((never ? refused : held)[name] > 0, name << " was not tried");
  }
}

}  // namespace stageline::replicas_tests
