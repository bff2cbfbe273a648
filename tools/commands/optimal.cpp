// stageline optimal: the shortest order of a step under a limit of memory, with its proof.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "sim/base/errors.hpp"
#include "tools/answers/shortest.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/report/text/optimal.hpp"
#include "tools/report/text/plan.hpp"

namespace stageline::cli {
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

// "best 63.00 ms · bound 61.00 ms, 3.3 % below · 1 204 224 states · at most 48 s left"
std::string words_of(const BranchKnown& known, Time left) {
  const double gap = 1 - to_seconds(known.bound) / std::max(1e-12, to_seconds(known.best));
  return fmt::format("best {} · bound {}, {} below · {} states · at most {} left",
                     print(known.best), print(known.bound), percent(gap),
                     report::grouped(known.states), in_short(std::max(0.0, to_seconds(left))));
}

answers::OptimalQuestion question_of(const OptimalFlags& flags) {
  answers::OptimalQuestion question;
  question.most = allowed(flags.time);
  question.setting = request_of(flags.common);
  question.setting.schedules = {spec_of(flags)};
  question.check = [](const Setting& setting) { check_one_count(setting, "optimal"); };
  return question;
}

answers::OptimalAnswer searched(const answers::OptimalQuestion& question, bool quiet) {
  ProgressLine line(!quiet);
  return answer(question,
                {&catch_signals(SecondSignal::ignored), [&](const BranchKnown& known, Time left) {
                   line.show([&] { return words_of(known, left); });
                 }});
}

int run_optimal(const OptimalFlags& flags) {
  const bool quiet = flags.common.quiet;
  const Outputs outputs{flags.common.json, {}, {}, quiet, {{"--out", flags.out}}};
  to_stdout({{"--out", flags.out}, {"--json", outputs.json}});  // refuses both
  const answers::OptimalAnswer answered = searched(question_of(flags), quiet);
  const int code = catch_signals(SecondSignal::ignored) ? exit_code_after_signal() : 0;
  if (!flags.out.empty()) {
    parse_program_format("slp").write({flags.out, answered.found.outcome.program});
  }
  Forms forms;
  forms.json = [&] { return report::optimal_json(answered); };
  forms.text = [&] {
    std::string text = report::optimal_text(answered, quiet);
    if (quiet) return wrapped(text, text_width());
    if (!flags.out.empty()) {
      text += fmt::format("\nwritten to {}; simulate and draw take it by --program\n", flags.out);
    }
    return wrapped(text + note_lines(notes(answered.setting)), text_width());
  };
  deliver(outputs, forms);
  return code;
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
  add_degree_flags(command, flags->common);
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

}  // namespace stageline::cli
