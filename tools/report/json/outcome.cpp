// Builds the JSON objects of outcomes and comparisons.
#include "tools/report/json/outcome.hpp"

#include <algorithm>

#include "sim/index.hpp"
#include "sim/text/words.hpp"
#include "tools/base/json.hpp"
#include "tools/study/recompute.hpp"
#include "tools/study/staleness_facts.hpp"
#include "traces/json/timeline.hpp"

#include "tools/report/timeline/weights.hpp"

namespace stageline {
namespace {

std::string_view name(Fit fit) {
  switch (fit) {
    case Fit::yes:
      return "yes";
    case Fit::no:
      return "no";
    case Fit::unknown:
      return "unknown";
  }
  return "";
}

Json bytes_or_null(Bytes bytes, bool known) { return known ? Json(bytes.count) : Json(nullptr); }

Json device_json(const Outcome& outcome, std::size_t d) {
  const DeviceMetrics& metrics = outcome.metrics.device[d];
  const DeviceMemory& memory = outcome.memory.device[d];
  Json device;
  device["name"] = outcome.program.devices[d];
  put_time(device, "busy", metrics.busy);
  put_time(device, "idle", metrics.idle);
  put_time(device, "span_idle", metrics.span_idle);
  Json idle_by;
  for (int kind = 0; kind < idle_kinds; ++kind) {
    put_time(idle_by, std::string(stageline::name(static_cast<IdleKind>(kind))),
             nth(metrics.idle_by, kind));
  }
  put_time(idle_by, "other", Time{});  // split into keys of their own since
  device["idle_by"] = idle_by;
  const bool known = outcome.bytes_known();
  device["peak_bytes"] = bytes_or_null(memory.peak, known);
  device["peak_at"] = known ? Json(to_seconds(memory.peak_at)) : Json(nullptr);
  device["peak_at_ps"] = known ? Json(memory.peak_at.count()) : Json(nullptr);
  Json at_peak;
  for (int kind = 0; kind < memory_kinds; ++kind) {
    at_peak[std::string(stageline::name(static_cast<MemoryKind>(kind)))] =
        nth(memory.at_peak, kind).count;
  }
  device["at_peak_bytes"] = known ? std::move(at_peak) : Json(nullptr);
  const auto& limit = outcome.memory_limit[d];
  device["memory_bytes"] = limit ? Json(limit->count) : Json(nullptr);
  int versions = 0;
  for (int s = 0; s < outcome.program.stages(); ++s) {
    for (const int device_of_stage : nth(outcome.program.placement.stage, s).replicas) {
      if (device_of_stage == static_cast<int>(d)) {
        versions = std::max(versions, nth(outcome.versions, s).held_peak);
      }
    }
  }
  device["weight_versions"] = versions;
  device["stash_peak"] = outcome.memory.device_stash_peak[d];
  return device;
}

// By device: [[at_ps, versions], …].
Json versions_held_json(const Outcome& outcome, const std::vector<HeldCurve>& curves,
                        std::size_t stage) {
  Json all = Json::array();
  for (const HeldCurve& curve : curves) {
    if (as_size(curve.stage) != stage) continue;
    Json points = Json::array();
    for (const HeldPoint& point : curve.points) {
      points.push_back(Json::array({point.at.count(), point.versions}));
    }
    all.push_back(
        {{"device", nth(outcome.program.devices, curve.device)}, {"curve_ps", std::move(points)}});
  }
  return all;
}

Json stage_json(const Outcome& outcome, std::size_t s) {
  const StageVersions& versions = outcome.versions[s];
  Json stage;
  stage["stage"] = s;
  Json devices = Json::array();
  for (const int device : outcome.program.placement.stage[s].replicas) {
    devices.push_back(nth(outcome.program.devices, device));
  }
  stage["device"] = devices.size() == 1 ? devices[0] : devices;
  const StagePlace& place = outcome.program.placement.stage[s];
  if (place.apart()) {
    const auto names = [&](Role role) {
      Json list = Json::array();
      for (const int device : place.homes(role)) {
        list.push_back(nth(outcome.program.devices, device));
      }
      return list;
    };
    stage["roles"] = {{"forward", devices},
                      {"input_grad", names(Role::input_grad)},
                      {"weight_grad", names(Role::weight_grad)}};
    if (!place.share.empty()) stage["roles"]["input_grad_share"] = place.share;
  }
  const auto or_null = [](int value, int none) { return value == none ? Json() : Json(value); };
  if (const auto& delay = outcome.program.settings.delay; !delay.empty()) {
    stage["delay_updates"] = or_null(delay[s], no_delay);
  }
  if (const auto& window = outcome.program.settings.window; !window.empty()) {
    stage["window"] = or_null(window[s], no_window);
  }
  Json layers = Json::array();
  for (std::size_t layer = 0; layer < outcome.plan.partition.stage_of.size(); ++layer) {
    if (outcome.plan.partition.stage_of[layer] == static_cast<int>(s)) layers.push_back(layer);
  }
  stage["layers"] = layers;
  put_time(stage, "forward", outcome.costs.stage[s].forward);
  put_time(stage, "input_grad", outcome.costs.stage[s].input_grad);
  put_time(stage, "weight_grad", outcome.costs.stage[s].weight_grad);
  put_time(stage, "backward", outcome.costs.stage[s].backward);
  put_time(stage, "update", outcome.costs.stage[s].update);
  stage["weights_bytes"] = bytes_or_null(outcome.costs.stage[s].weights, outcome.bytes_known());
  stage["stash_bytes"] = bytes_or_null(outcome.costs.stage[s].stash(), outcome.bytes_known());
  stage["stash_peak"] = outcome.memory.stage[s].stash_peak;
  stage["weight_versions"] = versions.held_peak;
  stage["staleness_updates"] = {{"min", versions.staleness_min},
                                {"mean", versions.staleness_mean},
                                {"max", versions.staleness_max}};
  Json histogram = Json::array();
  for (const StalenessCount& count : versions.staleness) {
    histogram.push_back(Json::array({count.updates, count.microbatches}));
  }
  stage["staleness_histogram"] = std::move(histogram);
  stage["consistent_weights"] = versions.consistent;
  stage["backward_reads_other_version"] = versions.read_other;
  stage["backward_reads_later_by_updates"] = versions.read_other_by;
  return stage;
}

Json stream_json(const Outcome& outcome) {
  const StreamFacts facts = stream_facts(outcome);
  Json stream;
  const auto of_bytes = [&](double value) {
    return outcome.bytes_known() ? Json(value) : Json(nullptr);
  };
  stream["stale_weights_fraction"] = of_bytes(facts.stale_share);
  stream["staleness_degree_updates"] = facts.degree;
  stream["live_microbatches"] = facts.live;
  stream["memory_increase_fraction"] = of_bytes(facts.memory_increase);
  if (facts.cycles > 0) stream["cycles"] = facts.cycles;
  return stream;
}

Json unanswered(const Case& asked, const std::string& schedule, const std::string& reason) {
  return {{"schedule", schedule}, {"devices", asked.cluster.devices.size()}, {"error", reason}};
}

Json json_of(const Setting& setting, const Case& asked, const Outcome& outcome, bool timeline) {
  Json result;
  result["schedule"] = outcome.schedule;
  result["synchronous"] = outcome.synchrony == Synchrony::synchronous;
  result["model"] = setting.model.name;
  result["costs"] = stageline::name(setting.model.provenance.origin);
  result["cluster"] = asked.cluster.name;
  result["partition"] = print(outcome.plan.partition);
  result["devices"] = outcome.devices;
  result["microbatches"] = outcome.microbatches;
  result["microbatch_size"] =
      outcome.microbatch_size > 0 ? Json(outcome.microbatch_size) : Json(nullptr);
  if (outcome.program.settings.sequence_chunks > 1) {
    result["sequence_chunks"] = outcome.program.settings.sequence_chunks;
  }
  result["steps"] = outcome.program.steps;
  put_time(result, "makespan", outcome.metrics.makespan);
  put_time(result, "step_time", outcome.step_time);
  result["settled"] = outcome.settled;
  if (outcome.period) {
    result["period"] = {{"time_ps", outcome.period->time.count()},
                        {"rounds", outcome.period->rounds},
                        {"round", outcome.round}};
  }
  // A result without duration has no throughput.
  const auto of_time = [&](double value) {
    return outcome.step_time > Time{} ? Json(value) : Json(nullptr);
  };
  result["throughput"] = of_time(outcome.throughput);
  result["throughput_unit"] = outcome.throughput_unit;
  result["speedup"] = of_time(outcome.speedup);
  result["bubble_fraction"] = outcome.bubble_fraction;
  result["recompute_fraction"] = recompute_fraction(outcome);
  result["exposed_communication_fraction"] = outcome.exposed_communication;
  result["fits"] = name(outcome.fit);
  Json path = Json::object();  // empty where no span takes time
  for (const PathShare& share : shares(outcome.critical_path))
    put_time(path, share.kind, share.time);
  result["critical_path"] = path;
  for (std::size_t d = 0; d < outcome.metrics.device.size(); ++d) {
    result["per_device"].push_back(device_json(outcome, d));
  }
  std::vector<HeldCurve> curves;
  if (timeline) curves = versions_held(outcome.program, outcome.versions);
  for (std::size_t s = 0; s < outcome.versions.size(); ++s) {
    Json stage = stage_json(outcome, s);
    if (timeline) stage["versions_held"] = versions_held_json(outcome, curves, s);
    result["per_stage"].push_back(std::move(stage));
  }
  if (outcome.synchrony == Synchrony::asynchronous) result["stream"] = stream_json(outcome);
  for (std::size_t h = 0; h < outcome.memory.host.size(); ++h) {
    const DeviceMemory& host = outcome.memory.host[h];
    if (host.peak == Bytes{}) continue;
    Json limit = nullptr;
    if (h < outcome.host_limit.size() && outcome.host_limit[h]) {
      limit = outcome.host_limit[h]->count;
    }
    result["per_host"].push_back({{"name", outcome.costs.network.hosts[h]},
                                  {"peak_bytes", host.peak.count},
                                  {"peak_at", to_seconds(host.peak_at)},
                                  {"peak_at_ps", host.peak_at.count()},
                                  {"memory_bytes", limit}});
  }
  result["notes"] = notes(setting);
  if (timeline) result["timeline"] = named_spans<Json>(outcome.timeline);
  return result;
}

Json measured_json(const MeasuredRuns& runs) {
  Json result;
  result["devices"] = runs.devices;
  if (!runs.device_title.empty()) result["device_title"] = runs.device_title;
  if (runs.imitated) result["imitated"] = true;
  for (const Time makespan : runs.makespan) result["makespan_ps"].push_back(makespan.count());
  for (std::size_t d = 0; d < runs.peak.size() && !runs.imitated; ++d) {
    result["peak_bytes"].push_back(runs.peak[d]);
    result["stash_bytes"].push_back(runs.stash[d]);
  }
  for (const std::vector<double>& losses : runs.losses) {
    if (!runs.imitated) result["losses"].push_back(losses);
  }
  result["predicted_makespan_ps"] = runs.predicted_makespan.count();
  return result;
}

}  // namespace

std::string outcome_json(const Setting& setting, const Case& asked, const Outcome& outcome,
                         bool timeline, const MeasuredRuns* measured) {
  Json result = json_of(setting, asked, outcome, timeline);
  if (measured != nullptr) result["measured"] = measured_json(*measured);
  return result.text();
}

std::string unanswered_json(const Case& asked, const std::string& reason) {
  return unanswered(asked, spelled(asked.spec), reason).text();
}

std::string rows_json(const Setting& setting, const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    if (row.outcome) {
      all.push_back(json_of(setting, row.asked, *row.outcome, false));
    } else {
      all.push_back(unanswered(row.asked, row.schedule, row.why_not));
    }
  }
  return all.text();
}

}  // namespace stageline
