// Writes the idle time of a measured run as a table and a sentence.
#include "tools/report/text/measured_idle.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/analysis/statistics.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"

namespace stageline::report {
namespace {

Time sum_of(const MeasuredIdle& idle, IdleKind kind) {
  Time sum{};
  for (const DeviceMetrics& device : idle.metrics.device) sum += nth(device.idle_by, kind);
  return sum;
}

// The usual kinds of idle time, and any other that occurs.
std::vector<IdleKind> kinds_to_show(const MeasuredIdle& idle) {
  std::vector<IdleKind> kinds;
  for (int i = 0; i < idle_kinds; ++i) {
    const auto kind = static_cast<IdleKind>(i);
    if (kind <= IdleKind::link || sum_of(idle, kind) > Time{}) kinds.push_back(kind);
  }
  return kinds;
}

std::string_view reason(IdleKind kind) {
  switch (kind) {
    case IdleKind::fill:
      return "the pipeline fills at the start of each step; with more micro-batches it is a smaller share";
    case IdleKind::drain:
      return "the pipeline drains at the end of each step; with more micro-batches it is a smaller share";
    case IdleKind::dependency:
      return "ranks wait for each other in this order of ops in any case";
    case IdleKind::imbalance:
      return "the same op does not take equally long on all stages and for all micro-batches";
    case IdleKind::link:
      return "ranks wait for messages that are in flight";
    case IdleKind::collectives:
      return "ranks wait for reductions between replicas";
    case IdleKind::optimizer:
      return "ranks wait for updates";
    case IdleKind::copies:
      return "ranks wait for copies to and from the host";
    case IdleKind::unused:
      return "ranks have no work";
  }
  return "";
}

std::string largest(const MeasuredIdle& idle) {
  Time other{};
  for (const Time time : idle.other) other += time;
  Time all = other;
  Time most = other;
  std::string sentence =
      "other: ranks have their inputs and run no op of the pipeline (launching, data loading, "
      "collectives, other work)";
  for (int i = 0; i < idle_kinds; ++i) {
    const auto kind = static_cast<IdleKind>(i);
    const Time sum = sum_of(idle, kind);
    all += sum;
    if (sum <= most) continue;
    most = sum;
    sentence = fmt::format("{}: {}", name(kind), reason(kind));
  }
  if (all == Time{}) return "→ no rank is ever idle\n";
  return fmt::format("→ {} of all idle time is {}\n", percent(fraction_of(most, all)), sentence);
}

std::string late_text(const KinetoRun& run, const MeasuredIdle& idle) {
  std::string list;
  for (std::size_t d = 0; d < idle.late.size(); ++d) {
    list += fmt::format("{}{} {}", d == 0 ? "" : ", ", run.program.devices[d], print(idle.late[d]));
  }
  return "free, with inputs there, before an op began: " + list + "\n";
}

// Messages between devices that the profiles do not time.
std::string untimed(const KinetoRun& run) {
  std::size_t messages = 0;
  for (const auto& list : run.program.ops) {
    for (const Op op : list) {
      const bool forward = op.kind == OpKind::forward;
      if (!forward && op.kind != OpKind::backward && op.kind != OpKind::input_grad) continue;
      const int from = forward ? op.stage - 1 : op.stage + 1;
      if (from < 0 || from >= run.program.stages()) continue;
      const auto& places = run.program.placement.stage;
      if (nth(places, from).replicas != nth(places, op.stage).replicas) ++messages;
    }
  }
  if (messages <= run.transit.size()) return "";
  return fmt::format(
      "of {} of {} messages the profiles do not show when they arrived: waiting for them, if any, "
      "counts as other\n",
      messages - run.transit.size(), messages);
}

}  // namespace

std::string measured_idle_text(const KinetoRun& run, const MeasuredIdle& idle) {
  const Time all = idle.metrics.makespan;
  const std::vector<IdleKind> kinds = kinds_to_show(idle);
  std::vector<Column> columns{{"device", true}, {"busy"}, {"idle"}};
  for (const IdleKind kind : kinds) columns.push_back({std::string(name(kind))});
  columns.push_back({"other"});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t d = 0; d < idle.metrics.device.size(); ++d) {
    const DeviceMetrics& device = idle.metrics.device[d];
    const auto share = [&](Time time) {
      return all > Time{} ? percent(fraction_of(time, all)) : percent(0);
    };
    std::vector<std::string> row{run.program.devices[d], print(device.busy), share(device.idle)};
    for (const IdleKind kind : kinds) row.push_back(share(nth(device.idle_by, kind)));
    row.push_back(share(idle.other[d]));
    rows.push_back(std::move(row));
  }
  return fmt::format("idle time by cause, of {} in {} step{} of {} micro-batches\n\n{}{}{}{}",
                     print(all), run.program.steps, run.program.steps == 1 ? "" : "s",
                     run.program.microbatches, table(columns, rows), largest(idle),
                     late_text(run, idle), untimed(run));
}

}  // namespace stageline::report
