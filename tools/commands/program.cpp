// stageline program: prints the program of a schedule, in our own text or in the format of another
// tool; converts or checks a program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/check/lint.hpp"
#include "sim/lower/passes.hpp"
#include "tools/answers/programs.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/report/text/lint.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::cli {
namespace {

struct ProgramFlags {
  CommonFlags common;
  std::string check;
  std::string out = "-";
  std::string format = "slp";
  std::string json;  // of --check
  bool compute_only = false;
};

std::string counted(int number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : noun.back() == 'h' ? "es" : "s");
}

// On the TRACE, cut for the stages of the program; unit costs without one.
Costs costs_for(const ProgramFlags& flags, const Program& program) {
  if (flags.common.trace().empty()) return unit_costs(program);
  answers::SettingQuestion question{request_of(flags.common)};
  question.setting.schedules = {given_schedule(program)};
  return answers::costs_of_program(question);
}

// Exit code 1 for errors or warnings in a program that can be read: that is the answer, not bad
// input.
int check_program(const ProgramFlags& flags) {
  TextPlaces places;
  Program program = read_program(flags.check, flags.common.quiet, &places);
  const bool is_text = !places.op.empty();  // a CSV has no lines of ours
  const TextPlaces* const where = is_text ? &places : nullptr;
  if (flags.common.given("messages")) {
    program.settings.messages = parse_messages(flags.common.text("messages"), "--messages");
  }
  Lint found = lint(program, {where, nullptr});
  // The cost of a hazard on a trace is defined only for a program that can run.
  std::optional<Costs> costs;
  if (found.count(Severity::error) == 0 && !flags.common.trace().empty()) {
    costs = costs_for(flags, program);
    found = lint(program, {where, &*costs});
  }
  const bool clean = found.count(Severity::error) + found.count(Severity::warning) == 0;
  if (!flags.json.empty()) write_file(flags.json, report::lint_json(flags.check, program, found));
  if (flags.json == "-") return clean ? 0 : 1;
  show("{}", report::lint_report(flags.check, program, found, !flags.common.quiet));
  if (clean && !flags.common.quiet) {
    if (!costs) costs = unit_costs(program);
    const TaskGraph graph = compile(complete(program, *costs), *costs);
    show("{}: ok: {}, {}, {} × {}, {} tasks\n", flags.check,
         counted(static_cast<int>(program.devices.size()), "device"),
         counted(program.stages(), "stage"), counted(program.microbatches, "micro-batch"),
         counted(program.steps, "step"), graph.tasks());
  }
  return clean ? 0 : 1;
}

void say(const std::vector<std::string>& notes, bool quiet) {
  // fmt::print would throw where standard error is closed or full.
  for (const std::string& note : notes) {
    if (!quiet) show(stderr, "note: {}\n", note);
  }
}

// Writes a program file in another format.
void convert_program(const ProgramFlags& flags) {
  const std::string& file = flags.common.trace();
  const ProgramFormat& format = parse_program_format(flags.format);
  if (format.needs_trace) {
    throw UsageError(fmt::format(
        "--format {} is made from layers and their costs, and {} is a program alone; name a TRACE, "
        "and this file with --program",
        format.name, file));
  }
  Program program = read_valid_program(file, flags.common.quiet);
  if (program.schedule.empty()) program.schedule = file;
  if (flags.compute_only) keep_compute(program);
  say(format.write({flags.out, program}), flags.common.quiet);
}

// Flags that decide costs alone, for a format without any. Our own text says no layers of stages
// either, and takes from a cut no more than the replicas that PipeDream's has.
std::vector<std::string> notes_on_costs(Flags command, const ProgramFormat& format,
                                        const std::string& partition) {
  if (format.needs_trace) return {};
  std::vector<std::string> of_costs{
      "--memory",      "--reserve",    "--host-memory", "--pair-overlap",  "--microbatch-size",
      "--calibration", "--slow",       "--zero",        "--zero-every",    "--shard-group",
      "--precision",   "--order",      "--sharing",     "--collectives",   "--buckets",
      "--encoder",     "--encoder-pp", "--encoder-tp",  "--frozen-encoder"};
  if (format.name == "slp" && !partition.starts_with("pipedream")) {
    of_costs.emplace_back("--partition");
  }
  std::vector<std::string> given;
  for (const std::string& flag : of_costs) {
    if (command.find(flag).given()) given.push_back(flag);
  }
  if (given.empty()) return {};
  return {fmt::format(
      "a program says no times and no bytes, so {} decide{} no more of it than the order of ops that "
      "the schedule derives from {}",
      fmt::join(given, ", "), given.size() == 1 ? "s" : "", given.size() == 1 ? "it" : "them")};
}

void print_program(const ProgramFlags& flags, Flags command) {
  if (flags.common.trace().empty()) {
    throw UsageError("name a TRACE to print a schedule's program, or --check FILE");
  }
  const ProgramFormat& format = parse_program_format(flags.format);
  const bool compute = flags.compute_only && !format.needs_trace && !format.places_messages;
  const answers::ProgramQuestion question{
      case_question(flags.common, "program"),
      compute ? answers::ProgramOf::checked_compute : answers::ProgramOf::run};
  const answers::ProgramAnswer found = answer(question);
  say(read_as_notes(flags.common.schedules), flags.common.quiet);
  std::vector<std::string> said = found.setting.notes;  // where nothing is refused
  for (std::string& note : notes_on_costs(command, format, question.setting.partition)) {
    said.push_back(std::move(note));
  }
  if (compute) {
    say(format.write({flags.out, found.program}), flags.common.quiet);
    say(said, flags.common.quiet);
    return;
  }
  const Outcome& outcome = *found.outcome;
  for (std::string& note : setting_notes(found.asked, outcome)) said.push_back(std::move(note));
  Program program = found.program;
  if (flags.compute_only) keep_compute(program);
  if (format.places_messages) {
    // Without the messages and updates that our passes have added: the format implies its own.
    if (found.asked.program) {
      program = *found.asked.program;
    } else {
      for (auto& list : program.ops) {
        std::erase_if(list, [](Op op) { return cargo_of(op.kind) || op.kind == OpKind::update; });
      }
    }
  }
  say(format.write({flags.out, program, &outcome, &found.asked.model}), flags.common.quiet);
  say(said, flags.common.quiet);
}

void add_program(Flags command) {
  const auto flags = std::make_shared<ProgramFlags>();
  add_problem_flags(command, flags->common);
  command.find("--steps").describe(
      "steps to write; default: 1, which is short of the pace and the peaks of asynchronous updates");
  add_degree_flags(command, flags->common);
  add_setting(command, flags->common, "messages");
  const Flag trace = command.find("TRACE");
  trace.required(false).describe(trace.help() + "; or a program file, to be converted");
  const Flags output = command.in(SettingGroup::output);
  const Flag out =
      output.common()
          .option("--out", flags->out,
                  "write to a file; default: stdout; for chakra, the prefix of the file names")
          .writes_file();
  command.writes_also(out, {"{}.*.et", "{}.groups.json"});
  const Flag format = output.common().option(
      "--format", flags->format,
      "slp (our own text), pytorch or pytorch-comms (the schedule CSV of "
      "torch.distributed, without "
      "and with messages), megatron (pipeline layout), pipedream (runtime "
      "configuration), torchgpipe "
      "(balance), chakra (execution traces), simai (workload); default: slp");
  const Flag compute_only =
      output.flag("--compute-only", flags->compute_only,
                  "without updates, reductions and messages, as a scheduler writes it");
  const Flag check = output.common().option(
      "--check", flags->check,
      "report errors, deadlocks and hazards of this program, with the cost of hazards on the "
      "TRACE or on unit costs");
  output.common()
      .option("--json", flags->json, "with --check: the findings as JSON to a file, or -")
      .writes_file()
      .needs(check);
  const Flag quiet = output.flag("--quiet", flags->common.quiet,
                                 "no notes; with --check: only errors and warnings");
  command.footer(
      "Example:\n  stageline program uniform:layers=4 --schedule 1f1b --devices 4 --microbatches 8 "
      "--out 1f1b.slp\n  stageline program --check 1f1b.slp\n"
      "Exit code 1 of --check: there are errors or warnings; notes alone do not count. A program\n"
      "file is our own text or PyTorch's schedule CSV, here and for --program; its content "
      "decides.");
  command.runs([=] {
    if (flags->check.empty() && is_program_file(flags->common.trace())) {
      for (const Flag option : command.all()) {
        const bool fits = option == trace || option == out || option == format ||
                          option == compute_only || option == quiet;
        if (!option.given() || fits) continue;
        throw UsageError(fmt::format("{} is a program, which says all by itself; leave out {}",
                                     flags->common.trace(), option.name()));
      }
      convert_program(*flags);
      return 0;
    }
    if (flags->check.empty()) {
      print_program(*flags, command);
      return 0;
    }
    const std::vector<std::string> for_costs{
        "TRACE",       "--batch",           "--cluster",  "--link",  "--memory",      "--host-link",
        "--partition", "--microbatch-size", "--messages", "--check", "--host-memory", "--json",
        "--quiet"};
    for (const Flag option : command.all()) {
      const std::string name = option.name();
      if (!option.given() ||
          std::find(for_costs.begin(), for_costs.end(), name) != for_costs.end()) {
        continue;
      }
      if (option == out || option == format || option == compute_only) {
        throw UsageError(
            fmt::format("--check says what is wrong and prints no program; leave out {}", name));
      }
      throw UsageError(
          fmt::format("the program text that --check reads says {} itself; leave it out", name));
    }
    return check_program(*flags);
  });
}

}  // namespace

extern const Command program_command;
const Command program_command = {
    "program", "Print a schedule as a program, convert a program, or check it", add_program, ""};

}  // namespace stageline::cli
