// Builds and simulates the rows of table 5.
#include "tools/lab/papers/zhang_runs.hpp"

#include <fmt/core.h>

#include "sim/model.hpp"
#include "tools/lab/papers/named.hpp"

namespace stageline::lab {
namespace {

ZhangRun run_of(const ZhangShare& net, Basis basis) {
  const bool measured = basis == Basis::measured_costs;
  const std::string trace = measured ? fmt::format("{}-cpu", net.model)
                                     : fmt::format("model:{}@gtx1060,batch=128", net.model);
  Case asked;
  asked.model = trace_named(trace);
  asked.cluster = cluster_named(measured ? "cpu2" : "gtx1060x2", 2);
  asked.spec = parse_schedules("stale_weights:mapping=paired").front();
  asked.partition = fmt::format("ppv:{}", net.ppv);
  asked.microbatches = 8;
  const Outcome outcome = study(asked);

  ZhangRun run;
  run.title = net.title;
  run.asked = asked;
  run.depth = std::stoi(run.title.substr(run.title.find('-') + 1));
  run.basis = basis;
  run.speedup = outcome.speedup;
  run.seconds = to_seconds(outcome.step_time) / outcome.microbatches;
  Time before{};
  for (std::size_t i = 0; i < asked.model.layers.size(); ++i) {
    const Layer& layer = asked.model.layers[i];
    if (outcome.plan.partition.stage_of[i] == 0) before += layer.forward + layer.backward;
  }
  run.share = to_seconds(before) / to_seconds(forward_backward(asked.model));
  for (const ZhangSpeedup& row : zhang_table5) {
    if (row.title == net.title) run.row = &row;
  }
  return run;
}

}  // namespace

std::vector<ZhangRun> zhang_runs() {
  std::vector<ZhangRun> runs;
  for (const ZhangShare& net : zhang_shares) {
    const bool has_trace =
        net.model == "resnet20" || net.model == "resnet56" || net.model == "resnet110";
    if (has_trace) runs.push_back(run_of(net, Basis::measured_costs));
  }
  for (const ZhangShare& net : zhang_shares) runs.push_back(run_of(net, Basis::roofline_costs));
  return runs;
}

}  // namespace stageline::lab
