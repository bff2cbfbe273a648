// Distributions of the step under scenarios, as JSON.

#include "tools/base/json.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/json/row_parts.hpp"

namespace stageline::report {
namespace {

Json failures_json(const Failures& failures, const LongRun* run) {
  const UsefulShare share = useful_share(failures);
  Json result{{"between_s", failures.between}, {"checkpoint_s", failures.checkpoint},
              {"restart_s", failures.restart}, {"interval_s", share.interval},
              {"useful", share.useful},        {"young_s", share.young},
              {"daly_s", share.daly}};
  if (run != nullptr) {
    result["run"] = {{"scenarios", run->scenarios}, {"mean_s", run->mean},      {"p5_s", run->p5},
                     {"p50_s", run->p50},           {"p95_s", run->p95},        {"p99_s", run->p99},
                     {"useful", run->useful},       {"failures", run->failures}};
  }
  return result;
}

}  // namespace

std::string uncertainty_json(const Setting& setting, const std::vector<UncertainRow>& rows,
                             const std::vector<std::size_t>& order,
                             const std::vector<std::string>& said, const Failures* failures,
                             const LongRun* run, bool partial) {
  Json result;
  const UncertainRow& first = rows[order.front()];
  result["model"] = setting.model.name;
  result["scenarios"] = first.steps->step.size();
  result["partial"] = partial;
  result["rows"] = Json::array();
  for (const std::size_t i : order) {
    const UncertainRow& row = rows[i];
    Json item{{"schedule", row.row.schedule}, {"fits", name(row.row.outcome->fit)}};
    item.update(scenarios_json(*row.steps, row.distribution, row.best));
    result["rows"].push_back(item);
  }
  result["not_possible"] = Json::array();
  for (const UncertainRow& row : rows) {
    if (row.steps) continue;
    result["not_possible"].push_back({{"schedule", row.row.schedule}, {"why", row.row.why_not}});
  }
  if (failures != nullptr) result["failures"] = failures_json(*failures, run);
  result["notes"] = said;
  return result.text();
}

}  // namespace stageline::report
