// Is LibTorch in this process as a measurement needs it?
#include "tools/executor/devices/torch_runtime.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "sim/base/errors.hpp"

namespace stageline::executor {
namespace {

TEST_CASE("the report names the libraries, the CPU, the threads and the cores") {
  set_threads(1);
  const ProcessReport report = inspect_process();
  MESSAGE(print(report));
  for (const std::string& warning : warnings(report)) MESSAGE(warning);
  CHECK(report.libtorch == STAGELINE_TORCH_VERSION);
  CHECK(version_in(report.libtorch) != "");
  CHECK(version_in(report.onednn) != "");
  CHECK(report.blas.name != "");
  CHECK(report.blas.file.find(".so") != std::string::npos);
  CHECK(report.threads == 1);
  CHECK(report.cores == allowed_cores());
  CHECK(report.sgemm_gflops > 0.1);
  CHECK(report.fma_gflops > 0.1);
}

TEST_CASE("the number of threads is as set, and a report does not change it") {
  set_threads(2);
  CHECK(inspect_process().threads == 2);
  CHECK(inspect_process().threads == 2);
  set_threads(1);
  CHECK(inspect_process().threads == 1);
  CHECK_THROWS_AS(set_threads(0), UsageError);
}

TEST_CASE("an OpenBLAS uses this CPU's kernels, without anything set by hand") {
  const Blas blas = loaded_blas();
  const char* const asked = std::getenv("OPENBLAS_CORETYPE");  // by hand, or by this program
  if (!blas.core_type.empty() && (asked == nullptr || blas.core_type != asked)) {
    CHECK(better_core_type(blas.core_type, this_cpu()) == "");
  }
  CHECK(blas.name.empty() == blas.file.empty());
}

}  // namespace
}  // namespace stageline::executor
