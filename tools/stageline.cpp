// The command `stageline`.
#include <fcntl.h>
#include <unistd.h>

#include "tools/commands/command_line.hpp"

namespace {

// If standard input, output or error is closed, the next file to be opened would get its number and
// receive its output. /dev/null, opened in the wrong direction, makes every use fail instead.
void hold_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    if (::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) != stream) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  hold_closed_streams();
  return stageline::run_command_line(argc, argv);
}
