// Schedules with all their knobs, and traces of others, through everything that answers.
#include <algorithm>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "tests/fuzz/runs.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/make.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::fuzz {

void schedules(const std::string& input) {
  const std::vector<ScheduleSpec> all = parse_schedules(input);
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 2); ++i) {
    const ScheduleSpec& spec = all[i];
    const std::vector<ScheduleSpec> again = parse_schedules(spelled(spec));
    hold(again.size() == 1 && again[0].scheduler == spec.scheduler && again[0].knobs == spec.knobs,
         "another schedule");
    const int devices = 1 + static_cast<int>(input.size() % 4);
    const int microbatches = 1 + static_cast<int>(input.size() % 7);
    try {
      const int stages = test::stages_for(spec, devices);
      if (stages > 64) continue;
      const Costs costs = uniform_costs(stages, devices, Time{2}, Time{3}, Time{1}, Time{1});
      const Program program = complete(
          spec.scheduler->schedule(test::problem_for(spec, devices, costs, microbatches)), costs);
      validate(program);
      std::size_t ops = 0;
      for (const auto& list : program.ops) ops += list.size();
      if (ops < 2000) check_run(program, costs);
    } catch (const UsageError&) {  // not on so many devices
    }
  }
}

void study_of_trace(const std::string& input) {
  const std::vector<Model> models = read_trace(input, "FILE");
  if (models.front().layers.size() > 64) return;
  constexpr const char* names[] = {"1f1b",      "gpipe:recompute=always", "zb_h1",
                                   "pipedream", "interleaved_1f1b",       "chimera"};
  Case asked;
  asked.model = models.front();
  const auto which = input.size();
  asked.spec = test::spec(names[which % std::size(names)]);
  asked.cluster = uniform_cluster(1 + static_cast<int>(which % 4),
                                  LinkSpec{Bandwidth{10'000'000'000}, Time{1'000'000}}, {});
  asked.microbatches = 1 + static_cast<int>(which % 9);
  study(asked, Curves::all);
}

}  // namespace stageline::fuzz
