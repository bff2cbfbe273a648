// stageline program: prints the program text of a schedule, or checks one.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cost_models/stage_costs.hpp"
#include "sim/errors.hpp"
#include "sim/lint.hpp"
#include "sim/passes.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "tools/files.hpp"
#include "tools/layout.hpp"
#include "tools/lint_report.hpp"

namespace stageline {
namespace {

struct ProgramFlags {
  CommonFlags common;
  std::string check;
  std::string out = "-";
  std::string json;  // of --check
  bool compute_only = false;
};

std::string counted(int number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : noun.back() == 'h' ? "es" : "s");
}

// On the TRACE, cut for the program's stages, where one is named.
Costs costs_for(const ProgramFlags& flags, const Program& program) {
  if (flags.common.trace.empty()) return unit_costs(program);
  CommonFlags common = flags.common;
  common.program = flags.check;
  const Setting setting = read_setting(common);
  const Case asked =
      make_case(common, setting, one_schedule(common), setting.device_counts.front());
  const Layout layout = lay_out(asked);
  return stage_costs(asked.model, layout.plan.partition, layout.placement, asked.cluster);
}

// Exit 1 when the program can be read but something is to be said against it: that is the answer,
// not bad input.
int check_program(const ProgramFlags& flags) {
  Program program;
  TextPlaces places;
  try {
    program = parse_program(read_file(flags.check), places);
  } catch (const ProgramError& error) {
    throw ProgramError(fmt::format("{}: {}", flags.check, error.what()));
  }
  if (const auto messages = parse_messages(flags.common.messages)) program.messages = *messages;
  Lint found = lint(program, {&places, nullptr});
  // What a hazard costs on a trace can be asked of a program that could run.
  std::optional<Costs> costs;
  if (found.count(Severity::error) == 0 && !flags.common.trace.empty()) {
    costs = costs_for(flags, program);
    found = lint(program, {&places, &*costs});
  }
  const bool clean = found.count(Severity::error) + found.count(Severity::warning) == 0;
  if (!flags.json.empty()) write_file(flags.json, lint_json(flags.check, program, found));
  if (flags.json == "-") return clean ? 0 : 1;
  fmt::print("{}", lint_report(flags.check, program, found, !flags.common.quiet));
  if (clean && !flags.common.quiet) {
    if (!costs) costs = unit_costs(program);
    const TaskGraph graph = compile(complete(program, *costs), *costs);
    fmt::print("{}: ok: {}, {}, {} × {}, {} tasks\n", flags.check,
               counted(static_cast<int>(program.devices.size()), "device"),
               counted(program.stages(), "stage"), counted(program.microbatches, "micro-batch"),
               counted(program.steps, "step"), graph.tasks());
  }
  return clean ? 0 : 1;
}

void print_program(const ProgramFlags& flags) {
  if (flags.common.trace.empty()) {
    throw UsageError("name a TRACE to print a schedule's program, or --check FILE");
  }
  const Setting setting = read_setting(flags.common);
  if (setting.device_counts.size() > 1) throw UsageError("program takes one number of devices");
  Case asked =
      make_case(flags.common, setting, one_schedule(flags.common), setting.device_counts.front());
  if (asked.steps == 0) asked.steps = 1;
  Program program = study(asked).program;
  if (flags.compute_only) {
    for (auto& list : program.ops) {
      std::erase_if(list, [](Op op) {
        return lane_of(op.kind) != LaneKind::compute || op.kind == OpKind::update;
      });
    }
  }
  write_file(flags.out, print(program));
}

}  // namespace

void add_program(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("program", "Print a schedule as program text, or check a program");
  const auto flags = std::make_shared<ProgramFlags>();
  add_problem_flags(*command, flags->common);
  add_messages_flag(*command, flags->common);
  command->get_option("TRACE")->required(false);
  command->add_option("--out", flags->out, "write the text to a file; default stdout");
  command->add_flag("--compute-only", flags->compute_only,
                    "without updates, reductions and messages, as a scheduler writes it");
  CLI::Option* const check = command->add_option(
      "--check", flags->check,
      "say all that is wrong with this program text: errors, deadlocks, hazards and their cost on "
      "the TRACE or else on unit costs");
  command->add_option("--json", flags->json, "with --check: the findings as JSON to a file, or -")
      ->needs(check);
  command->add_flag("--quiet", flags->common.quiet, "with --check: errors and warnings alone")
      ->needs(check);
  command->footer(
      "Example:\n  stageline program uniform:layers=4 --schedule 1f1b --devices 4 --microbatches 8 "
      "--out 1f1b.slp\n  stageline program --check 1f1b.slp\n"
      "Exit code 1 of --check: there are errors or warnings; notes alone do not count.");
  command->callback([=, &exit_code] {
    if (flags->check.empty()) return print_program(*flags);
    const std::vector<std::string> for_costs{
        "TRACE",       "--batch",           "--cluster",  "--link",  "--memory",      "--host-link",
        "--partition", "--microbatch-size", "--messages", "--check", "--host-memory", "--json",
        "--quiet"};
    for (const CLI::Option* const option : command->get_options()) {
      const std::string name = option->get_name();
      if (option->count() == 0 ||
          std::find(for_costs.begin(), for_costs.end(), name) != for_costs.end()) {
        continue;
      }
      throw UsageError(
          fmt::format("the program text that --check reads says {} itself; leave it out", name));
    }
    exit_code = check_program(*flags);
  });
}

}  // namespace stageline
