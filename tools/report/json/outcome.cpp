// Builds the JSON objects of outcomes and comparisons.
#include "tools/report/json/outcome.hpp"

#include <algorithm>

#include "sim/analysis/memory_categories.hpp"
#include "sim/base/index.hpp"
#include "sim/text/words.hpp"
#include "tools/base/json.hpp"
#include "tools/report/figure_table.hpp"
#include "tools/report/json/row_parts.hpp"
#include "tools/report/json/ways_to_fit.hpp"
#include "tools/study/evidence/ties.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/figures/reported_memory.hpp"
#include "tools/study/pace/stash_gap.hpp"
#include "traces/json/timeline.hpp"

#include "tools/report/text/step_parts.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/report/timeline/weights.hpp"

namespace stageline::report {
namespace {

Json bytes_or_null(Bytes bytes, bool known) { return known ? Json(bytes.count) : Json(nullptr); }

std::string_view name(PeakOp::Moment moment) {
  switch (moment) {
    case PeakOp::Moment::runs:
      return "runs";
    case PeakOp::Moment::starts:
      return "starts";
    case PeakOp::Moment::has_ended:
      return "has_ended";
  }
  return "";
}

Json peak_op_json(const DeviceMemory& memory) {
  if (!memory.peak_op) return nullptr;
  const Op op = memory.peak_op->op;
  Json result;
  result["op"] = print(op);
  result["stage"] = op.stage;
  result[counts_microbatches(op.kind) ? "microbatch" : "update"] = op.microbatch;
  if (memory.peak_op->other) result["with"] = print(*memory.peak_op->other);
  result["moment"] = name(memory.peak_op->moment);
  return result;
}

// Null of a measured peak, whose composition is not known.
Json peak_by_category_json(const DeviceMemory& memory) {
  if (total(memory.at_peak) != memory.peak) return nullptr;
  const CategoryUse use = peak_by_category(memory);
  Json result;
  for (int category = 0; category < memory_categories; ++category) {
    result[stageline::name(static_cast<MemoryCategory>(category))] = nth(use, category).count;
  }
  return result;
}

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
  device["peak_op"] = known ? peak_op_json(memory) : Json(nullptr);
  device["peak_by_category"] = known ? peak_by_category_json(memory) : Json(nullptr);
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

void put_collectives(Json& stage, const char* key, const BlockingTimes& of_ops) {
  if (of_ops == BlockingTimes{}) return;
  Json times;
  put_time(times, "forward", of_ops.forward);
  put_time(times, "input_grad", of_ops.input_grad);
  put_time(times, "weight_grad", of_ops.weight_grad);
  put_time(times, "backward", of_ops.backward);
  put_time(times, "recompute", of_ops.recompute);
  put_time(times, "update", of_ops.update);
  stage[key] = times;
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
  const StageFigures& figures = outcome.figures.stage[s];
  put_time(stage, "forward", figures.forward);
  put_time(stage, "input_grad", figures.input_grad);
  put_time(stage, "weight_grad", figures.weight_grad);
  put_time(stage, "backward", figures.backward);
  put_time(stage, "update", figures.update);
  put_collectives(stage, "blocking_collectives", figures.blocking);
  put_collectives(stage, "hidden_collectives", figures.hidden);
  if (const auto& reduction = figures.reduction) {
    Json collective;
    put_time(collective, "alone", reduction->alone);
    put_time(collective, "head_start", reduction->head_start);
    collective["bytes"] = reduction->bytes.count;
    stage["gradient_reduction"] = collective;
  }
  stage["weights_bytes"] = bytes_or_null(figures.weights, outcome.bytes_known());
  stage["stash_bytes"] = bytes_or_null(figures.stash, outcome.bytes_known());
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

Json stream_json(const Outcome& outcome, const StreamFacts& facts) {
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

Json order_json(const Case& asked) {
  const DeviceOrder& found = *asked.device_order;
  Json json{{found.machines ? "machines" : "devices", found.names},
            {"given_step_time_ps", found.given ? Json(found.given->count()) : Json(nullptr)},
            {"given_fits", found.given_fits},
            {"orders", found.orders},
            {"simulated", found.simulated}};
  if (found.placement.empty()) return json;
  json["placement"] = found.placement;
  json["other_placement_step_time_ps"] =
      found.elsewhere ? Json(found.elsewhere->count()) : Json(nullptr);
  json["other_placement_fits"] = found.elsewhere_fits;
  return json;
}

Json cut_search_json(const FoundCut& found) {
  return {{"simulated", found.simulated},
          {"all", found.all},
          {"step_time_ps", found.found.count()},
          {"plain", found.plain},
          {"plain_step_time_ps", found.plain_step ? Json(found.plain_step->count()) : Json()},
          {"plain_fits", found.plain_fits}};
}

Json unanswered(const Case& asked, const std::string& schedule, const std::string& reason) {
  Json row{{"schedule", schedule}};
  if (asked.cut_asked() != "balanced") row["cut"] = asked.cut_asked();
  row["devices"] = asked.device_count();
  row["error"] = reason;
  return row;
}

Json algorithms_json(const std::vector<UsedAlgorithm>& algorithms) {
  Json all = Json::array();
  for (const UsedAlgorithm& one : algorithms) {
    Json row{{"group", std::string(stageline::name(one.dimension))},
             {"kind", std::string(stageline::name(one.kind))},
             {"algorithm", std::string(one.algorithm)},
             {"least_bytes", one.least.count},
             {"most_bytes", one.most.count},
             {"priced_by", std::string(stageline::name(one.entry.by))}};
    if (one.entry.number >= 0) row["entry"] = one.entry.number;
    if (!one.entry.source.empty()) row["source"] = one.entry.source;
    if (has_op_times(one)) {
      row["exposed_ps"] = one.exposed.count();
      row["hidden_ps"] = one.hidden.count();
    }
    all.push_back(std::move(row));
  }
  return all;
}

void put_cut_search(Json& result, const Case& asked) {
  if (asked.found_cut) result["cut_search"] = cut_search_json(*asked.found_cut);
}

// `each`: devices of a rack; null where racks have unequal shares.
Json placement_json(const Allocation& found) {
  Json json{{"rule", found.rule}, {"racks", found.racks}, {"each", nullptr}};
  if (found.each > 0) json["each"] = found.each;
  for (const Straddling& one : found.straddling) {
    json["straddling"].push_back(
        {{"group", one.group}, {"ranks", one.ranks}, {"groups", one.groups}});
  }
  return json;
}

void put_ranks(Json& result, const Case& asked, const Outcome& outcome) {
  if (asked.ranked) {
    put_degrees(result, asked);
    result["collectives"] = algorithms_json(used_algorithms(asked, outcome));
  }
  if (asked.device_order) result["device_order"] = order_json(asked);
  const Cluster& devices = asked.ranked ? asked.ranked->devices() : asked.cluster;
  if (devices.allocation) result["placement"] = placement_json(*devices.allocation);
}

void put_period(Json& result, const Outcome& outcome) {
  if (!outcome.period) return;
  result["period"] = {{"time_ps", outcome.period->time.count()},
                      {"rounds", outcome.period->rounds},
                      {"round", outcome.round}};
}

// Keys of language models.
void put_blocking(Json& result, const TrainingRates& rates) {
  if (!rates.tokens_per_second && !rates.model_flops) return;
  Json blocking;
  for (std::size_t g = 0; g < rates.blocking.size(); ++g) {
    const bool own = all_dimensions[g] != Dimension::expert_tensor || rates.blocking[g] > 0;
    if (own) blocking[stageline::name(all_dimensions[g])] = rates.blocking[g];
  }
  result["blocking_fraction_by_group"] = std::move(blocking);
}

// The table of figures, and behind some of them the objects of what they are about.
void put_figures(Json& result, const Setting& setting, const Case& asked, const Outcome& outcome,
                 const BudgetFigures& budget) {
  FigureFacts facts = facts_of(asked, outcome, budget);
  facts.model = &setting.model;
  for (const FigureRow& figure : all_figures()) {
    put_figure(result, figure, facts);
    const std::string_view key = figure.key;
    if (key == "cut") put_cut_search(result, asked);
    if (key == "devices") put_ranks(result, asked, outcome);
    if (key == "settled") put_period(result, outcome);
    if (key == "hfu") put_blocking(result, budget.rates);
    if (key == "dollars") put_energy(result, budget.energy);
  }
}

void put_path(Json& result, const Outcome& outcome) {
  Json path = Json::object();  // empty where no span takes time
  for (const PathShare& share : outcome.figures.path) put_time(path, share.kind, share.time);
  result["critical_path"] = path;
}

void put_stash_bound(Json& result, const Case& asked, const Outcome& outcome) {
  const auto gap = outcome.figures.is_apart ? stash_gap(asked, outcome) : std::nullopt;
  if (!gap) return;
  Json least{{"stashes", gap->stashes}};
  put_time(least, "span", gap->span);
  put_time(least, "bound", gap->bound);
  least["gap"] = gap->share();
  least["why"] = gap->why;
  result["stash_bound"] = std::move(least);
}

void put_hosts(Json& result, const Outcome& outcome) {
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
}

// What counters of a run show; no key where that is unknown.
void put_reported(Json& device, const Case& asked, const Outcome& outcome, std::size_t number) {
  const std::optional<ReportedMemory> reported = reported_memory(asked, outcome, number);
  if (!reported) return;
  device["reported_bytes"] = {
      {"allocated", reported->allocated.count},
      {"reserved", reported->reserved.count},
      {"least_reserved", reported->least_reserved.count},
      {"most_reserved", reported->most_reserved.count},
      {"driver", reported->driver ? Json(reported->driver->count) : Json(nullptr)}};
}

Json json_of(const Setting& setting, const Case& asked, const Outcome& outcome, bool timeline,
             const BudgetFigures& budget) {
  Json result;
  put_figures(result, setting, asked, outcome, budget);
  put_path(result, outcome);
  put_stash_bound(result, asked, outcome);
  for (std::size_t d = 0; d < outcome.metrics.device.size(); ++d) {
    Json device = device_json(outcome, d);
    put_reported(device, asked, outcome, d);
    result["per_device"].push_back(std::move(device));
  }
  std::vector<HeldCurve> curves;
  if (timeline) curves = versions_held(outcome.program, outcome.versions);
  for (std::size_t s = 0; s < outcome.versions.size(); ++s) {
    Json stage = stage_json(outcome, s);
    if (timeline) stage["versions_held"] = versions_held_json(outcome, curves, s);
    result["per_stage"].push_back(std::move(stage));
  }
  if (outcome.figures.stream) result["stream"] = stream_json(outcome, *outcome.figures.stream);
  put_hosts(result, outcome);
  result["notes"] = notes(setting);
  for (const std::string& note : stream_notes(asked, outcome)) result["notes"].push_back(note);
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
                         bool timeline, const MeasuredRuns* measured, const TrainingBudget& budget,
                         const Waterfall* waterfall, const WaysToFit* ways,
                         const std::vector<answers::StepPart>& from_peak) {
  Json result = json_of(setting, asked, outcome, timeline, budget_figures(asked, outcome, budget));
  if (measured != nullptr) result["measured"] = measured_json(*measured);
  if (waterfall != nullptr) result["waterfall"] = waterfall_json(*waterfall);
  if (!from_peak.empty()) result["from_peak"] = step_parts_json(from_peak);
  if (ways != nullptr && outcome.fit == Fit::no) {
    result["ways_to_fit"] = ways_to_fit_json(*ways);
  }
  return result.text();
}

std::string row_json(const Setting& setting, const Row& row, bool timeline) {
  return json_of(setting, row.asked, *row.outcome, timeline, row.figures).text();
}

namespace {

Json uncertainty_part(const Uncertainty& row) {
  if (!row.steps) return {{"error", row.why_not}};
  Json part{{"scenarios", row.steps->step.size()}, {"partial", row.steps->partial}};
  part.update(scenarios_json(*row.steps, row.distribution, row.best));
  return part;
}

}  // namespace

std::string unanswered_json(const Case& asked, const std::string& reason) {
  return unanswered(asked, title(asked.spec), reason).text();
}

std::string rows_json(const Setting& setting, const std::vector<Row>& rows,
                      const RowsBeside& beside) {
  Json all = Json::array();
  const bool several = differences_of(rows).recomputations;
  const auto put_recomputation = [&](Json& item, const Row& row) {
    if (several) item["recomputation"] = print(row.asked.recomputation());
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (!row.outcome) {
      Json item = unanswered(row.asked, row.schedule, row.why_not);
      put_recomputation(item, row);
      all.push_back(std::move(item));
      continue;
    }
    Json item = json_of(setting, row.asked, *row.outcome, false, row.figures);
    if (i < beside.uncertain.size()) item["uncertainty"] = uncertainty_part(beside.uncertain[i]);
    if (i < beside.waterfalls.size()) {
      item["waterfall"] = waterfall_json(beside.waterfalls[i].waterfall);
      if (i > 0) {
        item["waterfall_difference"] = difference_json(beside.waterfalls[0], beside.waterfalls[i]);
      }
    }
    if (beside.ways != nullptr && beside.ways->row == i) {
      item["ways_to_fit"] = ways_to_fit_json(*beside.ways);
    }
    put_recomputation(item, row);
    if (!beside.tied.empty()) {
      item["tie"] = std::find(beside.tied.begin(), beside.tied.end(), i) != beside.tied.end();
      item["schedule_held"] = was_held(row.outcome->schedule);
    }
    all.push_back(std::move(item));
  }
  return all.text();
}

}  // namespace stageline::report
