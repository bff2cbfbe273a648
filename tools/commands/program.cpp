// stageline program: prints the program text of a schedule, or checks one.
#include <fmt/format.h>

#include <memory>

#include "sim/errors.hpp"
#include "sim/passes.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "tools/files.hpp"

namespace stageline {
namespace {

struct ProgramFlags {
  CommonFlags common;
  std::string check;
  std::string out = "-";
  bool compute_only = false;
};

std::string counted(int number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : noun.back() == 'h' ? "es" : "s");
}

// Exit 1 when the program is well-formed but cannot finish: that is the answer, not bad input.
int check_program(const ProgramFlags& flags) {
  Program program;
  try {
    program = parse_program(read_file(flags.check));
    validate(program);
  } catch (const ProgramError& error) {
    throw ProgramError(fmt::format("{}: {}", flags.check, error.what()), error.device,
                       error.position, error.figure);
  }
  Costs costs = uniform_costs(program.stages(), static_cast<int>(program.devices.size()), Time{1},
                              Time{1}, Time{1});
  costs.edges.clear();
  for (const StageEdge edge : program.edges) costs.edges.push_back({edge, Bytes{1}, Bytes{1}});
  try {
    const TaskGraph graph = compile(complete(program, costs), costs);
    if (!flags.common.quiet) {
      fmt::print("{}: ok: {}, {}, {} × {}, {} tasks\n", flags.check,
                 counted(static_cast<int>(program.devices.size()), "device"),
                 counted(program.stages(), "stage"), counted(program.microbatches, "micro-batch"),
                 counted(program.steps, "step"), graph.tasks());
    }
    return 0;
  } catch (const Deadlock& deadlock) {
    fmt::print("{}: {}\n\n{}", flags.check, deadlock.what(), deadlock.figure);
    return 1;
  }
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
  CLI::Option* const check = command->add_option("--check", flags->check,
                                                 "check this program text and print nothing else");
  CLI::Option* const quiet =
      command->add_flag("--quiet", flags->common.quiet, "with --check: nothing if all is well")
          ->needs(check);
  command->footer(
      "Example:\n  stageline program uniform:layers=4 --schedule 1f1b --devices 4 --microbatches 8 "
      "--out 1f1b.slp\n  stageline program --check 1f1b.slp\n"
      "Exit code 1 of --check: the program deadlocks.");
  command->callback([=, &exit_code] {
    if (flags->check.empty()) return print_program(*flags);
    for (const CLI::Option* const option : command->get_options()) {
      if (option->count() == 0 || option == check || option == quiet) continue;
      throw UsageError(
          fmt::format("--check needs the program text alone; leave out {}", option->get_name()));
    }
    exit_code = check_program(*flags);
  });
}

}  // namespace stageline
