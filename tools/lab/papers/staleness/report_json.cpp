// The staleness study as JSON.
#include <string>
#include <utility>
#include <vector>

#include "tools/base/json.hpp"
#include "tools/lab/papers/staleness/report.hpp"

namespace stageline::lab {
namespace {

Json case_json(const CaseResult& one) {
  Json json{{"group", name(one.asked->group)},
            {"case", one.asked->name},
            {"accuracy_percent", one.accuracy.mean},
            {"half_range_percent", one.accuracy.half},
            {"seeds", Json(one.percents)},
            {"diverged", one.diverged},
            {"stale_weights_fraction", one.stale_share},
            {"staleness_updates", one.staleness},
            {"kept_copies", one.copies},
            {"wall_s", one.wall_seconds}};
  put_time(json, "training", one.total);
  return json;
}

}  // namespace

std::string staleness_json(const StalenessEvidence& evidence) {
  const std::vector<NetResult> results = results_of(evidence);
  Json nets = Json::array();
  for (const NetResult& result : results) {
    Json cases = Json::array();
    for (const CaseResult& one : result.cases) cases.push_back(case_json(one));
    nets.push_back({{"name", result.net->name},
                    {"title", result.net->title},
                    {"data", result.net->data},
                    {"reduced", result.net->reduced},
                    {"cases", std::move(cases)}});
  }
  Json findings = Json::array();
  for (const StudyFinding& one : findings_of(results)) {
    findings.push_back({{"what", one.what},
                        {"net", one.net},
                        {"here", name(one.holds)},
                        {"ours", one.numbers},
                        {"published", one.published}});
  }
  return Json{{"findings", std::move(findings)}, {"nets", std::move(nets)}}.text();
}

}  // namespace stageline::lab
