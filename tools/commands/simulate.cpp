// stageline simulate: everything about one schedule.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "schedulers/aliases.hpp"
#include "sim/analysis/cycle_words.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/text/figure.hpp"
#include "sim/text/placed.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/staleness.hpp"
#include "tools/report/timeline/weights.hpp"
#include "tools/study/notes.hpp"
#include "tools/study/recompute.hpp"

namespace stageline {
namespace {

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

std::string device_table(const Outcome& outcome) {
  const Time all = outcome.metrics.makespan;
  const std::vector<IdleKind> kinds = kinds_to_show(outcome.metrics);
  std::vector<Column> columns{{"device", true}, {"busy"}, {"idle"}};
  for (const IdleKind kind : kinds) columns.push_back({std::string(name(kind))});
  for (const char* const title : {"peak memory", "of", "at", "stashes"}) columns.push_back({title});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t d = 0; d < outcome.metrics.device.size(); ++d) {
    const DeviceMetrics& metrics = outcome.metrics.device[d];
    const DeviceMemory& memory = outcome.memory.device[d];
    std::vector<std::string> row{outcome.program.devices[d], print(metrics.busy),
                                 percent(part(metrics.idle, all))};
    for (const IdleKind kind : kinds) {
      row.push_back(percent(part(nth(metrics.idle_by, kind), all)));
    }
    const auto& limit = outcome.memory_limit[d];
    row.push_back(bytes_text(memory.peak, outcome.bytes_known()));
    row.push_back(limit ? print(*limit) : "unknown");
    row.push_back(outcome.bytes_known() ? print(memory.peak_at) : "–");
    row.push_back(fmt::format("{}", outcome.memory.device_stash_peak[d]));
    rows.push_back(std::move(row));
  }
  return table(columns, rows);
}

std::string layers_of(const Outcome& outcome, const Model& model, int stage) {
  const auto& stage_of = outcome.plan.partition.stage_of;
  int first = -1;
  int last = -1;
  int count = 0;
  for (int layer = 0; layer < static_cast<int>(stage_of.size()); ++layer) {
    if (nth(stage_of, layer) != stage) continue;
    if (first < 0) first = layer;
    last = layer;
    ++count;
  }
  const auto name_of = [&](int layer) { return nth(model.layers, layer).name; };
  return count == 1 ? name_of(first)
                    : fmt::format("{} … {} ({})", name_of(first), name_of(last), count);
}

std::string stage_table(const Outcome& outcome, const Model& model) {
  std::vector<std::vector<std::string>> rows;
  for (int s = 0; s < outcome.program.stages(); ++s) {
    const auto at = as_size(s);
    const StageCosts& costs = outcome.costs.stage[at];
    const StageVersions& versions = outcome.versions[at];
    Bytes sent{};
    for (const EdgeCosts& edge : outcome.costs.edges) {
      if (edge.edge.from == s) sent += edge.activation;
    }
    rows.push_back(
        {fmt::format("{}", s), placed(outcome.program, s), layers_of(outcome, model, s),
         print(costs.forward), print(costs.backward),
         bytes_text(costs.weights, outcome.bytes_known()),
         bytes_text(costs.stash(), outcome.bytes_known()), bytes_text(sent, outcome.bytes_known()),
         fmt::format("{}", outcome.memory.stage[at].stash_peak),
         fmt::format("{}", versions.held_peak),
         staleness_range(versions) + (versions.staleness.size() > 1
                                          ? fmt::format(" ({:.3g})", versions.staleness_mean)
                                          : std::string()),
         versions.consistent ? std::string("F=B") : fmt::format("F≠B ×{}", versions.read_other)});
  }
  return table({{"stage"},
                {"device", true},
                {"layers", true},
                {"F"},
                {"B"},
                {"weights"},
                {"stash"},
                {"sends"},
                {"stashes"},
                {"versions"},
                {"staleness"},
                {"reads"}},
               rows);
}

std::string peak_text(const Outcome& outcome) {
  if (!outcome.bytes_known()) return "peak memory unknown: the trace does not say bytes";
  const auto device = as_size(outcome.peak_device());
  const auto& limit = outcome.memory_limit[device];
  return fmt::format("peak memory {} on {}{}", print(outcome.memory.device[device].peak),
                     outcome.program.devices[device],
                     !limit                   ? " (memory unknown: give --memory or --cluster)"
                     : outcome.fit == Fit::no ? fmt::format(": does NOT fit in {}", print(*limit))
                                              : fmt::format(" of {}: fits", print(*limit)));
}

std::string summary(const Outcome& outcome) {
  std::string text = fmt::format("{}: step {}", outcome.schedule, print(outcome.step_time));
  if (outcome.step_time > Time{}) {
    text += fmt::format(" · {:.5g} {} · {:.2f}× one device · bubble {}", outcome.throughput,
                        outcome.throughput_unit, outcome.speedup, percent(outcome.bubble_fraction));
  }
  if (const double share = recompute_fraction(outcome); share > 0) {
    text += fmt::format(" · recompute {}", percent(share));
  }
  text += "\n";
  // The cycle of a flushed step is its critical path.
  if (outcome.period && outcome.synchrony == Synchrony::asynchronous) {
    text += fmt::format("decided by: {}\n",
                        in_words(*outcome.period, outcome.round, outcome.program.devices));
  }
  text += fmt::format("{}; makespan of {} step{} {}\n", peak_text(outcome), outcome.program.steps,
                      outcome.program.steps == 1 ? "" : "s", print(outcome.metrics.makespan));
  return text;
}

std::string path_line(const Outcome& outcome) {
  std::string text = "critical path:";
  for (const PathShare& share : shares(outcome.critical_path)) {
    text += fmt::format(" {} {} ({})", share.kind, print(share.time),
                        percent(part(share.time, outcome.metrics.makespan)));
  }
  return text + "\n";
}

int run_simulate(const CommonFlags& flags, bool timeline) {
  const SettingRequest request = request_of(flags);
  const Setting setting = read_setting(request);
  if (setting.device_counts.size() > 1) {
    throw UsageError("simulate takes one number of devices; `stageline compare` takes a sweep");
  }
  const ScheduleSpec spec = one_schedule(flags);
  const Case asked = make_case(request, setting, spec, setting.device_counts.front());
  const Outcome outcome = study(asked);
  const int answer = outcome.fit == Fit::no ? 1 : 0;
  if (!flags.json.empty()) write_file(flags.json, outcome_json(setting, asked, outcome, timeline));
  if (flags.json == "-") return answer;
  if (!flags.quiet) fmt::print("{}\n", heading(setting, asked));
  fmt::print("{}{}\n{}\n{}\n", summary(outcome), path_line(outcome) + stream_report(outcome),
             device_table(outcome), stage_table(outcome, setting.model));
  fmt::print("{}", figure(outcome.timeline, {Time{}, 100, colour_wanted()}));
  fmt::print("{}", held_figure(outcome.program, outcome.timeline, outcome.versions));
  if (flags.quiet) return answer;
  fmt::print("{}\n{}", figure_legend(), held_legend(outcome.versions));
  fmt::print("\nnote: cut \"{}\": {}\n", print(outcome.plan.partition), outcome.plan.reason);
  for (const std::string& note : read_as_notes(flags.schedules)) fmt::print("note: {}\n", note);
  for (const std::string& note : notes(setting)) fmt::print("note: {}\n", note);
  for (const std::string& note : stream_notes(asked, outcome)) fmt::print("note: {}\n", note);
  return answer;
}

void add(Flags command) {
  const auto flags = std::make_shared<CommonFlags>();
  const auto timeline = std::make_shared<bool>(false);
  add_case_flags(command, *flags);
  add_messages_flag(command, *flags);
  command.flag("--timeline", *timeline, "with --json: include every span")
      .needs(command.find("--json"));
  command.footer(
      "Example:\n  stageline simulate uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms "
      "\\\n    --schedule 1f1b --devices 4 --microbatches 8\n"
      "reports a step of 66 ms, and why. Exit code 1: it does not fit into memory.");
  command.runs([flags, timeline] { return run_simulate(*flags, *timeline); });
}

}  // namespace

extern const Command simulate_command;
const Command simulate_command = {"simulate", "Simulate one schedule in full", add, ""};

}  // namespace stageline
