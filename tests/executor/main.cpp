// The main of the tests that need LibTorch: they start as the tools do.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "tools/executor/processes/process.hpp"

int main(int argc, char** argv) {
  for (const std::string& sentence : stageline::executor::prepare_process(argv)) {
    std::fprintf(stderr, "warning: %s\n", sentence.c_str());
  }
  return doctest::Context(argc, argv).run();
}
