#include "tools/report/text/explanation.hpp"
#include "tools/base/json.hpp"
#include "tools/report/text/step_parts.hpp"

namespace stageline::report {

std::string explanation_json(const answers::Explanation& found) {
  Json result;
  result["model"] = found.setting.model.name;
  result["schedule"] = found.outcome.schedule;
  result["devices"] = found.asked.device_count();
  put_time(result, "predicted", found.outcome.step_time);
  const auto end = [&](double Interval::*factor) {
    return from_seconds(*found.interval.*factor * to_seconds(found.outcome.step_time));
  };
  if (found.interval) {
    put_time(result, "predicted_low", end(&Interval::low));
    put_time(result, "predicted_high", end(&Interval::high));
    result["predicted_range_of"] = provenance_of(*found.interval);
  }
  result["within_range"] = found.interval ? Json(found.fits_evidence()) : Json(nullptr);
  put_time(result, "measured", found.measured.step);
  result["measured_read_as"] = found.measured.read_as;
  result["longer"] = found.longer();
  result["memory_measured_bytes"] =
      found.memory_measured ? Json(found.memory_measured->count) : Json(nullptr);
  result["parts"] = step_parts_json(found.parts);
  Json suspects = Json::array();
  for (const answers::Suspect& one : found.suspects) {
    Json row{{"cause", one.name},
             {"words", one.words},
             {"check", one.check},
             {"flags", one.flags},
             {"strength", one.strength}};
    put_time(row, "step", one.step);
    suspects.push_back(row);
  }
  result["suspects"] = suspects;
  result["notes"] = explanation_notes(found);
  return result.text();
}

}  // namespace stageline::report
