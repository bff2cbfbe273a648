// The program `stageline-lab`: the researchers' bench.
#include "tools/lab/commands.hpp"

int main(int argc, char** argv) {
  return stageline::cli::run_commands(
      stageline::lab::lab_commands(),
      "The researchers' bench of Stageline: published tables and measured runs held against the "
      "simulator, and the cost of stale weights in accuracy.",
      argc, argv);
}
