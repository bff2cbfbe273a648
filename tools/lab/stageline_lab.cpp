// The program `stageline-lab`: the researchers' bench.
#include "tools/lab/commands.hpp"

int main(int argc, char** argv) {
  return stageline::run_commands(
      stageline::lab_commands(),
      "The researchers' bench of Stageline: published tables and measured runs held against the "
      "simulator, and the cost of stale weights in accuracy.",
      argc, argv);
}
