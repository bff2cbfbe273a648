// Writes a judgement as JSON.
#include "sim/analysis/statistics.hpp"
#include "sim/base/index.hpp"
#include "tools/base/json.hpp"
#include "tools/lab/evidence/kept.hpp"
#include "tools/lab/evidence/report.hpp"

namespace stageline::lab {
namespace {

// The worst of `count` cases; null without any.
Json worst_json(const Worst& worst, std::size_t count) {
  if (count == 0) return nullptr;
  return {{"value", worst.value}, {"case", worst.at}};
}

Json ranking_json(const Ranking& ranking) {
  Json json{{"pairs", ranking.pairs},
            {"decidable", ranking.decidable},
            {"tied", ranking.tied},
            {"discordant", ranking.discordant},
            {"tau", ranking.tau ? Json(*ranking.tau) : Json(nullptr)}};
  json["worst"] = nullptr;
  if (ranking.worst) {
    json["worst"] = {{"faster_case", ranking.worst->faster},
                     {"slower_case", ranking.worst->slower},
                     {"difference", ranking.worst_difference}};
  }
  return json;
}

Json summary_object(const Summary& summary) {
  const std::size_t all = summary.cases.size();
  const auto with_memory = as_size(summary.memory_cases);
  const auto with_noise = as_size(summary.noise_cases);
  return {{"cases", all},
          {"mean_error", summary.mean_error},
          {"median_error", summary.median_error},
          {"bias", summary.bias},
          {"worst_error", worst_json(summary.worst_error, all)},
          {"mean_beyond_noise", summary.mean_beyond_noise},
          {"worst_beyond_noise", worst_json(summary.worst_beyond_noise, all)},
          {"mean_idle_error", summary.mean_idle_error},
          {"worst_idle_error", worst_json(summary.worst_idle_error, all)},
          {"mean_idle_noise", summary.mean_idle_noise},
          {"worst_idle_beyond_noise", summary.worst_idle_beyond_noise},
          {"worst_transfer_error", worst_json(summary.worst_transfer_error, all)},
          {"memory_cases", summary.memory_cases},
          {"worst_peak_error", worst_json(summary.worst_peak_error, with_memory)},
          {"worst_peak_beyond_runs", worst_json(summary.worst_peak_beyond_runs, with_memory)},
          {"peaks_within_aim", summary.peaks_within_aim},
          {"stash_exact", summary.stash_exact},
          {"worst_stash_error_bytes", worst_json(summary.worst_stash_error, with_memory)},
          {"clocks_kept", summary.clocks_kept},
          {"counted_stash_exact", summary.counted_stash_exact},
          {"counted_peaks_within_aim", summary.counted_peaks_within_aim},
          {"worst_counted_peak_error", worst_json(summary.worst_counted_peak_error, with_memory)},
          {"noise_cases", summary.noise_cases},
          {"mean_noise", summary.mean_noise},
          {"worst_noise", worst_json(summary.worst_noise, with_noise)},
          {"ranking", ranking_json(summary.ranking)}};
}

Json device_json(const MeasuredCase& measured, const CaseJudgement& judged, std::size_t d) {
  const MeasuredDevice& is = measured.devices[d];
  const PredictedDevice& predicted = judged.prediction.devices[d];
  Json device{{"name", judged.prediction.timeline.devices[d]}};
  put_time(device, "predicted_busy", predicted.busy);
  put_time(device, "measured_busy", median(is.busy));
  put_time(device, "predicted_transfer", predicted.transfer);
  put_time(device, "measured_transfer", median(is.transfer));
  device["predicted_peak_bytes"] = predicted.peak.count;
  device["predicted_stash_bytes"] = predicted.stash.count;
  device["counted_peak_least_bytes"] = predicted.counted_peak.least.count;
  device["counted_peak_most_bytes"] = predicted.counted_peak.most.count;
  device["counted_stash_bytes"] = predicted.counted_stash.count;
  device["measured_peaks_bytes"] = Json::array();
  for (const Bytes peak : is.peaks) device["measured_peaks_bytes"].push_back(peak.count);
  device["measured_stashes_bytes"] = Json::array();
  for (const Bytes stash : is.stashes) device["measured_stashes_bytes"].push_back(stash.count);
  return device;
}

Json case_json(const MeasuredCase& measured, const CaseJudgement& judged) {
  Json json{{"model", measured.model},
            {"batch", measured.batch},
            {"schedule", measured.schedule},
            {"partition", measured.partition},
            {"microbatches", measured.microbatches},
            {"steps", measured.steps},
            {"link", measured.link},
            {"host_link", measured.host_link},
            {"held_out", measured.held_out},
            {"runs", measured.makespan.size()}};
  put_time(json, "predicted", judged.prediction.makespan);
  put_time(json, "measured", judged.measured);
  put_time(json, "spread", judged.spread);
  if (judged.noise) {
    put_time(json, "noise", *judged.noise);
  } else {
    json["noise_ps"] = nullptr;
    json["noise_s"] = nullptr;
  }
  json["error"] = judged.error;
  json["idle_error"] = judged.idle_error;
  json["idle_noise"] = judged.idle_noise ? Json(*judged.idle_noise) : Json(nullptr);
  json["transfer_error"] = judged.transfer_error;
  json["peak_error"] = judged.peak_error ? Json(*judged.peak_error) : Json(nullptr);
  json["peak_beyond_runs"] =
      judged.peak_beyond_runs ? Json(*judged.peak_beyond_runs) : Json(nullptr);
  json["stash_error_bytes"] = judged.stash_error ? Json(judged.stash_error->count) : Json(nullptr);
  json["counted_peak_error"] =
      judged.counted_peak_error ? Json(*judged.counted_peak_error) : Json(nullptr);
  json["counted_stash_error_bytes"] =
      judged.counted_stash_error ? Json(judged.counted_stash_error->count) : Json(nullptr);
  for (std::size_t d = 0; d < measured.devices.size(); ++d) {
    json["per_device"].push_back(device_json(measured, judged, d));
  }
  return json;
}

}  // namespace

std::string replay_json(const Evidence& evidence, const EvidenceJudgement& judgement) {
  Json json{{"device", evidence.device},     {"date", evidence.date},
            {"software", evidence.software}, {"settings", evidence.settings},
            {"command", evidence.command},   {"notes", evidence.notes}};
  if (evidence.imitated) json["imitated"] = true;
  json["held_out"] = summary_object(judgement.held_out);
  json["calibrated"] = summary_object(judgement.calibrated);
  json["cases"] = Json::array();
  for (std::size_t i = 0; i < evidence.cases.size(); ++i) {
    json["cases"].push_back(case_json(evidence.cases[i], judgement.cases[i]));
  }
  return json.text();
}

std::string kept_json(const EvidenceJudgement& judgement) {
  Json json{{"format", kept_format}};
  json["held_out"] = summary_object(judgement.held_out);
  json["calibrated"] = summary_object(judgement.calibrated);
  return json.text();
}

}  // namespace stageline::lab
