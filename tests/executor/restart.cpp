// Does prepare_process start the program again with the kernels for this CPU, once, and with the
// same arguments? This program looks as if it had loaded an OpenBLAS that knows no CPU since 2004.
// Exit code 77 (skipped) where the CPU is as old as that.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tools/executor/processes/process.hpp"

extern "C" {
void sgemm_() {}
const char* openblas_get_config() { return "OpenBLAS 0.0.1"; }
const char* openblas_get_corename() { return "Prescott"; }
}

int main(int argc, char** argv) {
  const std::string wanted =
      stageline::executor::better_core_type("Prescott", stageline::executor::this_cpu());
  if (wanted.empty()) {
    std::puts("this CPU has no AVX2, so that OpenBLAS's choice stands");
    return 77;
  }
  const char* const before = std::getenv("OPENBLAS_CORETYPE");
  const bool again = before != nullptr && *before != 0;
  for (const std::string& not_done : stageline::executor::prepare_process(argv))
    std::puts(not_done.c_str());
  const char* const set = std::getenv("OPENBLAS_CORETYPE");
  const bool same_arguments =
      argc == 3 && std::string_view(argv[1]) == "an argument" && std::string_view(argv[2]).empty();
  std::printf("started again: %s, with %s, the arguments are the same: %s\n", again ? "yes" : "no",
              set == nullptr ? "nothing" : set, same_arguments ? "yes" : "no");
  return again && set == wanted && same_arguments ? 0 : 1;
}
