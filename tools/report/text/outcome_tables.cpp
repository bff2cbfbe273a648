// Writes the tables of devices and stages.
#include "tools/report/text/outcome_tables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/text/placed.hpp"
#include "tools/base/row_groups.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/timeline/weights.hpp"

namespace stageline::report {
namespace {

using RowCells = std::vector<std::string>;

double part(Time some, Time whole) {
  return whole > Time{} ? to_seconds(some) / to_seconds(whole) : 0;
}

// The usual kinds of idle time, and any other that occurs.
std::vector<IdleKind> kinds_to_show(const Metrics& metrics) {
  std::vector<IdleKind> kinds;
  for (int i = 0; i < idle_kinds; ++i) {
    const auto kind = static_cast<IdleKind>(i);
    const bool any = std::any_of(
        metrics.device.begin(), metrics.device.end(),
        [&](const DeviceMetrics& device) { return nth(device.idle_by, kind) > Time{}; });
    if (any || kind <= IdleKind::link) kinds.push_back(kind);
  }
  return kinds;
}

// The layers of the stages `first` to `last`.
std::string layers_of(const Outcome& outcome, const Model& model, int first_stage, int last_stage) {
  const auto& stage_of = outcome.plan.partition.stage_of;
  int first = -1;
  int last = -1;
  int count = 0;
  for (int layer = 0; layer < static_cast<int>(stage_of.size()); ++layer) {
    if (nth(stage_of, layer) < first_stage || nth(stage_of, layer) > last_stage) continue;
    if (first < 0) first = layer;
    last = layer;
    ++count;
  }
  const auto name_of = [&](int layer) { return nth(model.layers, layer).name; };
  return count == 1 ? name_of(first)
                    : fmt::format("{} … {} ({})", name_of(first), name_of(last), count);
}

// Whether two rows have equal cells from that column on.
bool equal_from(std::size_t column, const RowCells& a, const RowCells& b) {
  return std::equal(a.begin() + static_cast<std::ptrdiff_t>(column), a.end(),
                    b.begin() + static_cast<std::ptrdiff_t>(column), b.end());
}

std::vector<RowGroup> groups_of(const std::vector<RowCells>& rows, std::size_t first_value,
                                const std::vector<std::vector<double>>& measures,
                                const TableView& view) {
  if (view.full) {
    std::vector<RowGroup> all;
    for (std::size_t i = 0; i < rows.size(); ++i) all.push_back({i, i});
    return all;
  }
  return row_groups(
      rows.size(),
      [&](std::size_t a, std::size_t b) { return equal_from(first_value, rows[a], rows[b]); },
      measures);
}

// The line below a table that shows fewer rows than there are.
std::string grouped_note(const std::vector<RowGroup>& groups, std::size_t rows,
                         const std::string& noun, int width) {
  if (groups.size() == rows) return "";
  const bool gaps =
      std::any_of(groups.begin(), groups.end(), [](const RowGroup& group) { return !group.shown; });
  const bool merged = std::any_of(groups.begin(), groups.end(), [](const RowGroup& group) {
    return group.shown && group.size() > 1;
  });
  return wrapped(fmt::format("… {} {} in {} rows{}{}: --full\n", rows, noun, groups.size(),
                             merged ? ", equal neighbours as one" : "",
                             gaps ? ", without those between the extremes" : ""),
                 width);
}

// The devices of a group of rows, which are in that column.
std::string devices_of(const std::vector<RowCells>& rows, std::size_t column,
                       const RowGroup& group) {
  std::set<std::string> devices;
  for (std::size_t i = group.first; i <= group.last; ++i) devices.insert(rows[i][column]);
  const std::string& first = rows[group.first][column];
  if (devices.size() == 1) return first;
  return devices.size() == group.size() ? fmt::format("{} … {}", first, rows[group.last][column])
                                        : fmt::format("{} devices", devices.size());
}

RowCells device_row(const Outcome& outcome, std::size_t d, const std::vector<IdleKind>& kinds,
                    bool activations) {
  const Time all = outcome.metrics.makespan;
  const DeviceMetrics& metrics = outcome.metrics.device[d];
  const DeviceMemory& memory = outcome.memory.device[d];
  RowCells row{outcome.program.devices[d], print(metrics.busy), percent(part(metrics.idle, all))};
  for (const IdleKind kind : kinds) {
    row.push_back(percent(part(nth(metrics.idle_by, kind), all)));
  }
  const auto& limit = outcome.memory_limit[d];
  row.push_back(bytes_text(memory.peak, outcome.bytes_known()));
  row.push_back(limit ? print(*limit) : "unknown");
  if (activations) {
    row.push_back(bytes_text(nth(memory.at_peak, MemoryKind::stash), outcome.bytes_known()));
  }
  row.push_back(outcome.bytes_known() ? print(memory.peak_at) : "–");
  row.push_back(fmt::format("{}", outcome.memory.device_stash_peak[d]));
  return row;
}

RowCells stage_row(const Outcome& outcome, const Model& model, int s) {
  const StageCosts& costs = nth(outcome.costs.stage, s);
  const StageVersions& versions = nth(outcome.versions, s);
  Bytes sent{};
  for (const EdgeCosts& edge : outcome.costs.edges) {
    if (edge.edge.from == s) sent += edge.activation;
  }
  return {fmt::format("{}", s),
          placed(outcome.program, s),
          layers_of(outcome, model, s, s),
          print(costs.forward),
          print(costs.backward),
          bytes_text(costs.weights, outcome.bytes_known()),
          bytes_text(costs.stash(), outcome.bytes_known()),
          bytes_text(sent, outcome.bytes_known()),
          fmt::format("{}", nth(outcome.memory.stage, s).stash_peak),
          fmt::format("{}", versions.held_peak),
          staleness_range(versions) + (versions.staleness.size() > 1
                                           ? fmt::format(" ({:.3g})", versions.staleness_mean)
                                           : std::string()),
          versions.consistent ? std::string("F=B") : fmt::format("F≠B ×{}", versions.read_other)};
}

// By measure, a value per stage.
std::vector<std::vector<double>> stage_measures(const Outcome& outcome) {
  std::vector<std::vector<double>> measures(7);
  for (int s = 0; s < outcome.program.stages(); ++s) {
    const StageCosts& costs = nth(outcome.costs.stage, s);
    const StageVersions& versions = nth(outcome.versions, s);
    const double values[] = {to_seconds(costs.forward),
                             to_seconds(costs.backward),
                             static_cast<double>(costs.weights.count),
                             static_cast<double>(costs.stash().count),
                             static_cast<double>(nth(outcome.memory.stage, s).stash_peak),
                             static_cast<double>(versions.held_peak),
                             versions.staleness_max};
    for (std::size_t i = 0; i < measures.size(); ++i) measures[i].push_back(values[i]);
  }
  return measures;
}

// By measure, a value per device.
std::vector<std::vector<double>> device_measures(const Outcome& outcome) {
  std::vector<std::vector<double>> measures(4);
  for (std::size_t d = 0; d < outcome.metrics.device.size(); ++d) {
    measures[0].push_back(to_seconds(outcome.metrics.device[d].busy));
    measures[1].push_back(to_seconds(outcome.metrics.device[d].idle));
    measures[2].push_back(static_cast<double>(outcome.memory.device[d].peak.count));
    measures[3].push_back(static_cast<double>(outcome.memory.device_stash_peak[d]));
  }
  return measures;
}

}  // namespace

std::string device_table(const Outcome& outcome, const TableView& view) {
  const std::vector<IdleKind> kinds = kinds_to_show(outcome.metrics);
  std::vector<Column> columns{{"device", true}, {"busy"}, {"idle"}};
  for (const IdleKind kind : kinds) columns.push_back({std::string(name(kind))});
  for (const char* const title : {"peak memory", "of", "activations", "at", "stashes"}) {
    if (view.activations || title != std::string_view("activations")) columns.push_back({title});
  }
  std::vector<RowCells> all;
  for (std::size_t d = 0; d < outcome.metrics.device.size(); ++d) {
    all.push_back(device_row(outcome, d, kinds, view.activations));
  }
  const std::vector<RowGroup> groups = groups_of(all, 1, device_measures(outcome), view);
  std::vector<RowCells> rows;
  for (const RowGroup& group : groups) {
    if (!group.shown) {
      rows.push_back({fmt::format("… {} more …", group.size())});
      continue;
    }
    rows.push_back(all[group.first]);
    rows.back()[0] = devices_of(all, 0, group);
  }
  return table(columns, rows, view.width) + grouped_note(groups, all.size(), "devices", view.width);
}

std::string stage_table(const Outcome& outcome, const Model& model, const TableView& view) {
  std::vector<RowCells> all;
  for (int s = 0; s < outcome.program.stages(); ++s) all.push_back(stage_row(outcome, model, s));
  const std::vector<RowGroup> groups = groups_of(all, 3, stage_measures(outcome), view);
  std::vector<RowCells> rows;
  for (const RowGroup& group : groups) {
    if (group.size() == 1) {
      rows.push_back(all[group.first]);
      continue;
    }
    const std::string stages = fmt::format("{}–{}", group.first, group.last);
    if (!group.shown) {
      rows.push_back({stages, "…", "…"});
      continue;
    }
    RowCells row = all[group.first];
    row[0] = stages;
    row[1] = devices_of(all, 1, group);
    row[2] = layers_of(outcome, model, static_cast<int>(group.first), static_cast<int>(group.last));
    rows.push_back(std::move(row));
  }
  const std::vector<Column> columns{{"stage"},   {"device", true}, {"layers", true}, {"F"},
                                    {"B"},       {"weights"},      {"stash"},        {"sends"},
                                    {"stashes"}, {"versions"},     {"staleness"},    {"reads"}};
  return table(columns, rows, view.width) + grouped_note(groups, all.size(), "stages", view.width);
}

}  // namespace stageline::report
