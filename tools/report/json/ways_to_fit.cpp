#include "tools/report/json/ways_to_fit.hpp"

#include <algorithm>
#include <cstdint>

#include "schedulers/scheduler.hpp"

namespace stageline::report {
namespace {

Json kinds_json(const std::vector<planner::ChangeKind>& kinds) {
  Json names = Json::array();
  for (const planner::ChangeKind kind : kinds) names.push_back(name(kind));
  return names;
}

Json way_json(const WayToFit& way) {
  const planner::ChangedCandidate& changed = way.changed;
  Json result;
  result["what"] = way.what;
  result["flags"] = way.flags;
  result["changes"] = kinds_json(changed.changes);
  result["schedule"] = title(changed.candidate.spec);
  result["devices"] = changed.candidate.shape.devices();
  put_time(result, "step_time", changed.verdict.step);
  result["cost"] = changed.cost_of_from > 0 ? Json(changed.cost / changed.cost_of_from) : Json();
  result["peak_bytes"] = changed.verdict.fullest().count;
  if (const std::optional<MemoryNeed>& need = changed.verdict.need) {
    // Memory that grows as long as it runs lacks no number of bytes.
    result["missing_bytes"] =
        need->grows ? Json() : Json(std::max<std::int64_t>(need->missing().count, 0));
    result["where"] = need->grows ? Json() : Json(need->place);
  }
  result["derived_costs"] = way.derived;
  return result;
}

}  // namespace

Json ways_to_fit_json(const WaysToFit& ways) {
  Json result;
  result["fitting"] = Json::array();
  for (const WayToFit& way : ways.fitting) result["fitting"].push_back(way_json(way));
  result["nearest"] = ways.nearest ? way_json(*ways.nearest) : Json();
  result["simulated"] = ways.search.simulated;
  result["refused"] = ways.search.refused;
  result["tried"] = kinds_json(ways.search.tried);
  result["all"] = !ways.search.cut_short;
  return result;
}

}  // namespace stageline::report
