// stageline optimal: the shortest order of a step under a limit of memory, with its proof.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/base/json.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/plan.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/optimal.hpp"

namespace stageline {
namespace {

struct OptimalFlags {
  CommonFlags common;
  std::string limit;
  std::string goal = "span";
  std::string placement = "straight";
  std::string chunks = "auto";
  std::string time = "60s";
  std::string out;
};

Time allowed(const std::string& text) {
  try {
    return parse_time(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--time: {}", error.what()));
  }
}

ScheduleSpec spec_of(const OptimalFlags& flags) {
  const std::string limit = !flags.limit.empty()            ? flags.limit
                            : !flags.common.given("memory") ? "p"
                                                            : "memory";
  return parse_schedules(fmt::format("zb_auto:limit={},goal={},placement={},chunks={}", limit,
                                     flags.goal, flags.placement, flags.chunks))
      .front();
}

Json json_of(const Setting& setting, const Optimal& found) {
  Json result;
  result["model"] = setting.model.name;
  result["cluster"] = found.asked.cluster.name;
  result["devices"] = found.asked.cluster.devices.size();
  result["microbatches"] = found.asked.microbatches;
  result["limit"] = found.limit.empty() ? Json(nullptr) : Json(found.limit);
  result["goal"] = found.for_span ? "span" : "makespan";
  put_time(result, "value", found.value);
  put_time(result, "bound", found.bound);
  result["gap"] = found.gap();
  result["optimal"] = found.is_proved();
  result["found_by"] = found.found_by;
  result["bound_by"] = found.bound_by;
  result["states"] = found.states;
  result["stopped"] = found.is_stopped;
  put_time(result, "step", found.outcome.step_time);
  result["program"] = print(found.outcome.program);
  result["notes"] = notes(setting);
  return result;
}

std::string report(const Optimal& found) {
  std::string text =
      fmt::format("{}: {}\n", found.for_span ? "longest device span" : "makespan without updates",
                  in_words(found));
  text += fmt::format("order: by {}\n", found.found_by);
  text += fmt::format("bound: {}, {}\n", print(found.bound), found.bound_by);
  if (found.states > 0) text += fmt::format("branch and bound: {} states\n", found.states);
  if (found.is_stopped) text += "stopped before it was proved; --time gives it longer\n";
  text += fmt::format("step: {}\n", print(found.outcome.step_time));
  return text;
}

// "best 63.00 ms · bound 61.00 ms, 3.3 % below · 1 204 224 states · at most 48 s left"
std::string words_of(const BranchKnown& known, Time left) {
  const double gap = 1 - to_seconds(known.bound) / std::max(1e-12, to_seconds(known.best));
  return fmt::format("best {} · bound {}, {} below · {} states · at most {} left",
                     print(known.best), print(known.bound), percent(gap), grouped(known.states),
                     in_short(std::max(0.0, to_seconds(left))));
}

int run_optimal(const OptimalFlags& flags) {
  const bool silent = to_stdout({{"--out", flags.out}, {"--json", flags.common.json}});
  const ScheduleSpec spec = spec_of(flags);
  const Time most = allowed(flags.time);
  const SettingRequest request = request_of(flags.common);
  Setting setting = read_setting(request);
  check_one_count(setting, "optimal");
  const Case asked = searched_case(request, setting, spec, setting.device_counts.front());
  const std::atomic<bool>& is_interrupted = catch_signals(SecondSignal::ignored);
  const auto begin = std::chrono::steady_clock::now();
  ProgressLine line(!flags.common.quiet);
  const Optimal found = optimal(asked, [&](const BranchKnown& known) {
    const auto left = most - (std::chrono::steady_clock::now() - begin);
    line.show([&] { return words_of(known, left); });
    return is_interrupted || left <= left.zero();
  });
  line.clear();
  for (std::string& note : setting_notes(found.asked, found.outcome)) {
    setting.notes.push_back(std::move(note));
  }
  const int answer = is_interrupted ? exit_code_after_signal() : 0;
  if (!flags.out.empty()) {
    parse_program_format("slp").write({flags.out, found.outcome.program});
  }
  if (!flags.common.json.empty()) write_file(flags.common.json, json_of(setting, found).text());
  if (silent) return answer;
  if (!flags.common.quiet) print_wrapped(heading(setting, found.asked) + "\n");
  print_wrapped(report(found));
  if (!flags.out.empty() && !flags.common.quiet) {
    print_wrapped(
        fmt::format("\nwritten to {}; simulate and draw take it by --program\n", flags.out));
  }
  if (!flags.common.quiet) {
    for (const std::string& note : notes(setting)) print_wrapped(fmt::format("note: {}\n", note));
  }
  return answer;
}

void add_optimal(Flags command) {
  const auto flags = std::make_shared<OptimalFlags>();
  add_trace_flags(command, flags->common);
  add_setting(command, flags->common, "devices")
      .describe("number of devices; default: all of the cluster, or 4");
  add_cluster_flags(command, flags->common);
  add_setting(command, flags->common, "microbatches")
      .describe("micro-batches per step; default: 4 per device");
  add_setting(command, flags->common, "microbatch_size");
  add_setting(command, flags->common, "partition").describe("as for simulate; default: balanced");
  const Flags search = command.in(SettingGroup::search).common();
  search.option("--limit", flags->limit,
                "the most a device may hold: N stashes, p or 2p of them, memory (the bytes it has "
                "room for) or none; default: p, or memory with --memory");
  search
      .option("--goal", flags->goal,
              "shorten the longest device span, which is the pace of steps that follow each other, "
              "or the makespan of one step, without its updates")
      .one_of({"span", "makespan"})
      .default_shown();
  search.option("--placement", flags->placement, "one stage a device, or several")
      .one_of({"straight", "looped", "v"})
      .default_shown();
  search
      .option("--chunks", flags->chunks,
              "stages a device; auto: 1 where the placement is straight, else 2")
      .default_shown();
  search
      .option("--time", flags->time,
              "how long to search at most; what is proved sooner ends sooner. Ctrl-C stops it, "
              "too, and prints the best so far")
      .default_shown();
  command.in(SettingGroup::output)
      .common()
      .option("--out", flags->out, "write the program to this file, or - for stdout")
      .writes_file();
  add_output_flags(command, flags->common);
  command.footer(
      "Example:\n  stageline optimal uniform:layers=4 --devices 4 --microbatches 8 --limit 3\n"
      "F, I and W of each micro-batch are apart, and each stage takes its micro-batches in turn. "
      "Shared links are\nsimulated, and not part of the bound.");
  command.runs([flags] { return run_optimal(*flags); });
}

}  // namespace

extern const Command optimal_command;
const Command optimal_command = {
    "optimal", "The shortest order of a step under a limit of memory, with bound and gap",
    add_optimal, ""};

}  // namespace stageline
