// Sets up LibTorch and its BLAS for one thread an operation.
#include "tools/executor/devices/torch_runtime.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "sim/base/errors.hpp"

namespace stageline::executor {
namespace {

// The best of several products of two square matrices, in one thread, in 10^9 operations a second.
double sgemm_gflops() {
  constexpr std::int64_t rows = 768;
  constexpr double operations = 2.0 * rows * rows * rows;
  constexpr double long_enough = 0.2;  // seconds in all, and at least three products
  const c10::InferenceMode no_graph;
  const at::Tensor a = at::ones({rows, rows}), b = at::ones({rows, rows});
  at::Tensor product = at::mm(a, b);  // warms up
  double best = 0, total = 0;
  for (int i = 0; i < 3 || total < long_enough; ++i) {
    const auto start = std::chrono::steady_clock::now();
    at::mm_out(product, a, b);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    total += taken.count();
    best = std::max(best, operations / taken.count() * 1e-9);
  }
  return best;
}

}  // namespace

void set_threads(int threads) {
  if (threads < 1) {
    throw UsageError(fmt::format("an operation needs at least 1 thread, not {}", threads));
  }
  at::set_num_threads(threads);
  // Can be set once, before the first use, by one of the threads that come here; nothing uses them.
  [[maybe_unused]] static const bool set_once = [] {
    if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
    return true;
  }();
  // LibTorch tells MKL, but not OpenBLAS.
  if (void* const set = ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"); set != nullptr) {
    reinterpret_cast<void (*)(int)>(set)(threads);
  }
}

ProcessReport inspect_process() {
  ProcessReport report;
  report.libtorch = STAGELINE_TORCH_VERSION;
  if (at::hasMKLDNN()) report.onednn = version_in(at::get_mkldnn_version());
  report.blas = loaded_blas();
  if (at::hasMKL()) report.blas.name = "MKL " + version_in(at::get_mkl_version());
  if (at::hasMKL()) report.blas.threads = BlasThreads::shared;
  report.cpu = this_cpu();
  report.cores = allowed_cores();
  report.threads = at::get_num_threads();
  set_threads(1);
  report.fma_gflops = fma_gflops(report.cpu);
  report.sgemm_gflops = sgemm_gflops();
  set_threads(report.threads);
  return report;
}

}  // namespace stageline::executor
