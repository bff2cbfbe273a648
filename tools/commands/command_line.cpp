// Registers the subcommands and runs the selected one.
#include "tools/commands/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "tools/commands/lab.hpp"
#include "tools/commands/program_main.hpp"

namespace stageline::cli {
namespace {

// If standard input, output or error is closed, the next file to be opened would get its number and
// receive its output. /dev/null, opened in the wrong direction, makes every use fail instead.
void hold_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    if (::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) != stream) return;
  }
}

void add_commands(std::span<const Command* const> commands, Flags program) {
  program.require_subcommand();
  program.footer(
      "Reports are as wide as the terminal, or as COLUMNS; without a terminal, or with COLUMNS=0,\n"
      "their lines are as long as they need. `stageline SUBCOMMAND --help` explains each.");
  for (const Command* const command : commands) {
    const Flags parent =
        command->parent.empty() ? program : program.find_subcommand(std::string(command->parent));
    const Flags own = parent.subcommand(std::string(command->name), std::string(command->about));
    if (command->add != nullptr) command->add(own);
  }
}

}  // namespace

int run_commands(std::span<const Command* const> commands, const std::string& about, int argc,
                 const char* const* argv) {
  hold_closed_streams();
  ProgramMain program;
  program.name = "stageline";
  program.about = about;
  return program_main(program, argc, argv, [&](Flags flags) { add_commands(commands, flags); });
}

int run_command_line(int argc, const char* const* argv) {
  if (is_for_lab(argc, argv)) return become_lab(argc, argv);
  return run_commands(
      commands(),
      "Stageline simulates pipeline-parallel training: how long a step takes, where the bubbles "
      "are, whether it fits, and how stale the weights are.",
      argc, argv);
}

}  // namespace stageline::cli
