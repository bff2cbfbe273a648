#include "tools/answers/program_diff.hpp"

#include <fmt/core.h>

#include "sim/analysis/kind_times.hpp"
#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "tools/base/provenance.hpp"
#include "tools/compare/overlay.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/planner/cuts/cut_search.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::answers {
namespace {

SideTimes times_of(const Recording& run) {
  return {makespan(run.timeline), steady_step(run), run.timeline.devices, busy_of(run.timeline)};
}

class DiffPricer {
 public:
  explicit DiffPricer(const DiffPrices& prices) : prices_(prices) {
    ClusterRequest request;
    request.cluster = prices.cluster;
    if (!prices.link.empty()) request.link = parse_link(prices.link);
    request.priced_for = priced_device(prices.trace);
    choice_ = choose_cluster(request);
    if (prices.trace.empty()) return;
    TraceRequest trace{prices.trace, prices.microbatch_size, prices.profile_batch, {}};
    if (choice_.fixed) trace.more_kinds = choice_.fixed->kinds;
    model_ = cut_by_layout(open_trace(trace), prices.partition);
  }

  std::string costs() const {
    return model_ ? fmt::format("{} ({})", model_->name, origin_of(model_->provenance))
                  : "every stage alike, F = I = W = 1 ms";
  }

  // Empty for a program that cannot be simulated; `why` then gets the reason.
  std::optional<SideTimes> price(const DiffedSide& side, std::vector<std::string>& why) const {
    const Program& program = *side.compared.program;
    Case asked;
    asked.model = model_ ? *model_ : uniform_model(fmt::format("layers={}", program.stages()));
    asked.cluster = cluster_of(choice_, static_cast<int>(program.devices.size()));
    asked.program = program;
    asked.partition = partition_text(prices_.partition);
    asked.microbatches = program.microbatches;
    try {
      const Outcome outcome = study(planner::with_searched_cut(asked));
      return SideTimes{outcome.metrics.makespan, outcome.step_time, program.devices,
                       busy_of(outcome.timeline)};
    } catch (const Deadlock& deadlock) {
      why.push_back(fmt::format("{}: {}", side.compared.name, deadlock.what()));
    } catch (const ProgramError& error) {
      why.push_back(fmt::format("{} is not simulated: {}", side.compared.name, error.what()));
    } catch (const UsageError& error) {
      why.push_back(fmt::format("{} is not simulated: {}", side.compared.name, error.what()));
    }
    return {};
  }

 private:
  const DiffPrices& prices_;
  ClusterChoice choice_;
  std::optional<Model> model_;
};

void price(const DiffQuestion& question, DiffReport& report) {
  const DiffedSide& first = question.first;
  const DiffedSide& second = question.second;
  const bool priced = !question.prices.trace.empty() || (first.program_file && second.program_file);
  const bool can = first.compared.program && second.compared.program;
  if (priced && can) {
    const DiffPricer pricer(question.prices);
    report.costs = pricer.costs();
    report.first = pricer.price(first, report.untimed);
    report.second = pricer.price(second, report.untimed);
    return;
  }
  if (priced) {
    throw UsageError(
        fmt::format("--trace prices programs, and {} is a timeline with times of its "
                    "own; leave --trace out",
                    (first.compared.program ? second : first).compared.name));
  }
  report.costs = "each timeline's own";
  if (first.run) report.first = times_of(*first.run);
  if (second.run) report.second = times_of(*second.run);
  if (report.first && report.second) return;
  report.untimed.emplace_back("a program has no times of its own; --trace prices it");
}

}  // namespace

DiffReport answer(const DiffQuestion& question) {
  DiffReport report;
  report.first_name = question.first.compared.name;
  report.second_name = question.second.compared.name;
  report.diff = diff_of(question.first.compared, question.second.compared);
  report.notes = report.diff.notes;
  price(question, report);
  for (const DiffedSide* const side : {&question.first, &question.second}) {
    if (!side->run) continue;
    for (const std::string& note : side->run->notes) {
      report.notes.push_back(fmt::format("{}: {}", side->compared.name, note));
    }
  }
  return report;
}

}  // namespace stageline::answers
