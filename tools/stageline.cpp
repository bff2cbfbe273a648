// The command. All bad input ends in run_command_line, as one sentence and exit code 2.
#include <fcntl.h>
#include <unistd.h>

#include "tools/base/version.hpp"
#include "tools/commands/command_line.hpp"

namespace {

// Where standard input, output or error is closed, the next file to be opened would take its place
// and receive what is meant for it. A stand-in that can only be used the wrong way fails instead.
void hold_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    if (::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) != stream) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  hold_closed_streams();
  return stageline::run_command_line(argc, argv, stageline::version());
}
