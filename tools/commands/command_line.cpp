// Registers the subcommands and runs the selected one.
#include "tools/commands/command_line.hpp"

#include "tools/commands/command.hpp"
#include "tools/commands/program_main.hpp"

namespace stageline {
namespace {

void add_commands(Flags program) {
  program.require_subcommand();
  program.footer(
      "Reports are as wide as the terminal, or as COLUMNS; without a terminal, or with COLUMNS=0,\n"
      "their lines are as long as they need. `stageline SUBCOMMAND --help` explains each.");
  for (const Command* const command : commands()) {
    const Flags parent =
        command->parent.empty() ? program : program.find_subcommand(std::string(command->parent));
    command->add(parent.subcommand(std::string(command->name), std::string(command->about)));
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  ProgramMain program;
  program.name = "stageline";
  program.about =
      "Stageline simulates pipeline-parallel training: how long a step takes, where the bubbles "
      "are, whether it fits, and how stale the weights are.";
  return program_main(program, argc, argv, add_commands);
}

}  // namespace stageline
