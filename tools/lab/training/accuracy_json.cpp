// Writes time to accuracy as JSON. The keys are documented in tools/report/json/README.md and
// stable.
#include "tools/base/json.hpp"
#include "tools/lab/training/accuracy_report.hpp"

namespace stageline::lab {
namespace {

Json number_or_null(std::optional<double> number) { return number ? Json(*number) : Json(nullptr); }

Json settings_json(const TrainingSettings& settings) {
  return {{"model", settings.model},
          {"trace", settings.trace},
          {"schedule", settings.schedule},
          {"partition", settings.partition},
          {"weights", settings.weights},
          {"correction", settings.correction},
          {"devices", settings.devices},
          {"microbatches", settings.microbatches},
          {"batch", settings.batch},
          {"data", settings.data},
          {"optimizer", settings.optimizer},
          {"recipe", settings.recipe},
          {"number_format", settings.number_format},
          {"steps", settings.steps},
          {"pipelined", settings.pipelined}};
}

Json reached_json(const AccuracyCurve& curve) {
  Json object;
  object["seeds"] = curve.reached.seeds;
  object["of"] = curve.runs.size();
  if (curve.reached.seeds == 0) return object;
  put_time(object, "time", curve.reached.time);
  object["steps"] = curve.reached.steps;
  object["before_switch"] = curve.reached.before_switch;
  return object;
}

Json curve_json(const AccuracyStudy& study, const AccuracyCurve& curve) {
  Json object;
  object["name"] = curve.name;
  object["settings"] = settings_json(curve.settings);
  object["files"] = Json::array();
  object["seeds"] = Json::array();
  for (const NamedLog& run : curve.runs) {
    object["files"].push_back(run.file);
    object["seeds"].push_back(run.log.seed);
  }
  object["steps"] = curve.steps;
  put_time(object, "total", curve.total);
  put_time(object, "step_time", curve.step_time());
  object["staleness_updates"] = curve.staleness;
  object["stale_weights_fraction"] = curve.stale_share;
  object["final_accuracy"] = number_or_null(curve.points.back().mean);
  object["best_accuracy"] = number_or_null(curve.best);
  object["to_target"] = reached_json(curve);
  object["speedup"] = number_or_null(curve.speedup);
  object["speedup_over"] = curve.base ? Json(study.curves[*curve.base].name) : Json(nullptr);
  object["points"] = Json::array();
  for (const AccuracyPoint& point : curve.points) {
    Json one;
    one["step"] = point.step;
    put_time(one, "end", point.end);
    one["mean"] = number_or_null(point.mean);
    one["least"] = point.mean ? Json(point.least) : Json(nullptr);
    one["most"] = point.mean ? Json(point.most) : Json(nullptr);
    object["points"].push_back(std::move(one));
  }
  return object;
}

Json family_json(const AccuracyStudy& study, const SwitchFamily& family) {
  Json object;
  object["name"] = family.name;
  object["steps"] = family.steps;
  object["points"] = Json::array();
  for (const std::size_t i : family.curves) {
    const AccuracyCurve& curve = study.curves[i];
    object["points"].push_back({{"pipelined", curve.pipelined() ? curve.settings.pipelined : 0},
                                {"curve", curve.name},
                                {"to_target", reached_json(curve)}});
  }
  object["best"] = family.best ? object["points"][*family.best]["pipelined"] : Json(nullptr);
  object["words"] = switch_words(study, family);
  return object;
}

}  // namespace

std::string accuracy_json(const AccuracyStudy& study, const std::vector<SwitchFamily>& families,
                          const TimesFrom& from) {
  Json object;
  object["target"] = study.target;
  object["target_given"] = study.target_given;
  object["times"] =
      from.trace.empty() ? Json("logs") : Json{{"trace", from.trace}, {"cluster", from.cluster}};
  object["curves"] = Json::array();
  for (const AccuracyCurve& curve : study.curves) {
    object["curves"].push_back(curve_json(study, curve));
  }
  object["switches"] = Json::array();
  for (const SwitchFamily& family : families) {
    object["switches"].push_back(family_json(study, family));
  }
  object["notes"] = accuracy_notes(study);
  return object.text();
}

}  // namespace stageline::lab
