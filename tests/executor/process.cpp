// What a measuring process makes of the machine it runs on, as far as that needs no LibTorch.
#include "tools/executor/processes/process.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "sim/base/errors.hpp"

namespace stageline::executor {
namespace {

constexpr const char* epyc =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\n"
    "model name\t: AMD EPYC 9R14\nflags\t\t: fpu sse2 fma avx avx2 avx512f avx512dq avx512cd "
    "avx512bw avx512vl avx512_bf16\nbugs\t\t: none\n\n"
    "processor\t: 1\nmodel name\t: the second core\nflags\t\t: fpu\n";

ProcessReport good_report() {
  ProcessReport report;
  report.libtorch = "2.13.0+cpu";
  report.onednn = "3.12.0";
  report.blas = {"OpenBLAS 0.3.21, Haswell kernels", "/usr/lib/libopenblas.so.0", "Haswell",
                 BlasThreads::shared};
  report.cpu = {"Some CPU", true, false};
  report.threads = 2;
  report.cores = {0, 1};
  report.sgemm_gflops = 83.4;
  report.fma_gflops = 118.2;
  return report;
}

TEST_CASE("cpuinfo gives the first core's model and what it can do") {
  const Cpu cpu = parse_cpuinfo(epyc);
  CHECK(cpu.model == "AMD EPYC 9R14");
  CHECK(cpu.avx2_fma);
  CHECK(cpu.avx512);
}

TEST_CASE("a feature counts only if the whole word stands there, with all it needs") {
  CHECK_FALSE(parse_cpuinfo("flags : fma4 avx2").avx2_fma);
  CHECK_FALSE(parse_cpuinfo("flags : fma avx").avx2_fma);
  CHECK(parse_cpuinfo("flags : avx2 fma").avx2_fma);
  CHECK_FALSE(parse_cpuinfo("flags : avx2 fma avx512f avx512cd avx512dq avx512vl").avx512);
  CHECK_FALSE(parse_cpuinfo("vmx flags : avx2 fma").avx2_fma);
}

TEST_CASE("a cpuinfo without these fields is an unknown CPU that can do nothing special") {
  for (const char* const text : {"", "\n\n", "processor : 0\nFeatures : fp asimd\n", "flags"}) {
    const Cpu cpu = parse_cpuinfo(text);
    CHECK(cpu.model == "unknown CPU");
    CHECK_FALSE(cpu.avx2_fma);
    CHECK_FALSE(cpu.avx512);
  }
}

TEST_CASE("OpenBLAS is corrected only where it does not use what the CPU has") {
  const Cpu plain{"", false, false}, avx2{"", true, false}, avx512{"", true, true};
  CHECK(better_core_type("Prescott", plain) == "");
  CHECK(better_core_type("Prescott", avx2) == "Haswell");
  CHECK(better_core_type("Prescott", avx512) == "SkylakeX");
  CHECK(better_core_type("Sandybridge", avx2) == "Haswell");
  CHECK(better_core_type("Haswell", avx2) == "");
  CHECK(better_core_type("Zen", avx2) == "");
  CHECK(better_core_type("Zen", avx512) == "SkylakeX");
  CHECK(better_core_type("SkylakeX", avx512) == "");
  CHECK(better_core_type("Sapphirerapids", avx512) == "");
}

TEST_CASE("this program has no BLAS and says so") { CHECK(loaded_blas().name == ""); }

TEST_CASE("a process without OpenBLAS is prepared without starting again") {
  char* none[] = {nullptr};
  const auto not_done = prepare_process(none);  // would not come back
  for (const auto& sentence : not_done) CHECK(sentence.find("OpenBLAS") == std::string::npos);
}

TEST_CASE("cores are printed as ranges") {
  CHECK(print_cores({}) == "");
  CHECK(print_cores({3}) == "3");
  CHECK(print_cores({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
}

TEST_CASE("a thread stays on the core it is pinned to, and so do those it starts") {
  std::thread([] {  // leaves the other cases' thread alone
    const int last = allowed_cores().back();
    pin_to_cores({last});
    CHECK(allowed_cores() == std::vector{last});
    std::thread([&] { CHECK(allowed_cores() == std::vector{last}); }).join();
  })
      .join();
}

TEST_CASE("a core that does not exist is refused with those that do, and nothing changes") {
  std::thread([] {
    const std::vector<int> before = allowed_cores();
    pin_to_cores({before.front()});
    const std::string message =
        "core 100000 cannot be used; the cores that this process may run on are " +
        print_cores(before);
    CHECK_THROWS_WITH_AS(pin_to_cores({before.back(), 100000}), message.c_str(), UsageError);
    CHECK_THROWS_AS(pin_to_cores({-1}), UsageError);
    CHECK_THROWS_AS(pin_to_cores({}), UsageError);
    CHECK(allowed_cores() == std::vector{before.front()});
  }).join();
}

TEST_CASE("a version is the first number with dots") {
  CHECK(version_in("Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for "
                   "Intel(R) 64 architecture") == "2024.2");
  CHECK(version_in("Intel(R) MKL-DNN v3.12.0 (Git Hash 80afa71)") == "3.12.0");
  CHECK(version_in("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH") == "0.3.21");
  CHECK(version_in("64 bits, version 1. 2") == "");
  CHECK(version_in("") == "");
}

TEST_CASE("the core's own speed is more than any core had in 2004") {
  CHECK(fma_gflops(this_cpu()) > 1);
}

TEST_CASE("a report is one line") {
  CHECK(print(good_report()) ==
        "LibTorch 2.13.0+cpu, oneDNN 3.12.0, OpenBLAS 0.3.21, Haswell kernels; Some CPU, 2 threads "
        "on cores 0-1; sgemm 83.4 GFLOP/s a thread (multiply-adds on AVX2 registers: 118)");
}

TEST_CASE("a good process has no warnings") { CHECK(warnings(good_report()).empty()); }

TEST_CASE("a slow BLAS is named, with its speed and the remedy") {
  ProcessReport report = good_report();
  report.sgemm_gflops = 3.07;
  report.threads = 1;
  report.blas = {"reference BLAS", "/usr/lib/blas/libblas.so.3.11.0", "", BlasThreads::caller};
  const auto found = warnings(report);
  REQUIRE(found.size() == 1);
  CHECK(found[0] ==
        "slow BLAS: sgemm runs at 3.07 GFLOP/s in one thread where this core does 118, so layers "
        "made of matrix products look too slow (reference BLAS, libblas.so.3.11.0); "
        "install libopenblas0-pthread");
}

TEST_CASE("an OpenBLAS with the kernels of an old CPU is told which to use") {
  ProcessReport report = good_report();
  report.sgemm_gflops = 32;
  report.blas.core_type = "Prescott";
  const auto found = warnings(report);
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("; set OPENBLAS_CORETYPE=Haswell") != std::string::npos);
}

TEST_CASE("threads that a matrix product does not use, or that share a core, are warned of") {
  ProcessReport report = good_report();
  report.cores = {1};
  report.blas.threads = BlasThreads::caller;
  const auto found = warnings(report);
  REQUIRE(found.size() == 2);
  CHECK(found[0].find("matrix products run in 1 thread, not in 2") == 0);
  CHECK(found[1].find("2 threads share 1 core,") == 0);
}

TEST_CASE("an OpenBLAS without locks is not for several lanes") {
  Blas blas = good_report().blas;
  blas.file = "/usr/lib/libopenblas.so.0";
  blas.threads = BlasThreads::own;
  CHECK(unfit_for_lanes(blas).empty());
  for (const BlasThreads threads : {BlasThreads::caller, BlasThreads::shared}) {
    blas.threads = threads;
    CHECK(unfit_for_lanes(blas) ==
          "this OpenBLAS 0.3.21, Haswell kernels (libopenblas.so.0) gives wrong products where "
          "several threads call it, as CPU lanes do; install libopenblas0-pthread");
  }
  CHECK(unfit_for_lanes({"MKL", "/usr/lib/libmkl.so", "", BlasThreads::shared}).empty());
}

}  // namespace
}  // namespace stageline::executor
