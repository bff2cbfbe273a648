// Prepares a process that measures with LibTorch, before its first tensor: a BLAS that uses the CPU
// it runs on, an allocator that keeps its pages, threads on cores of their own. And reports what
// the process runs on, for the output and for every trace. Nothing here needs LibTorch;
// torch_runtime.hpp has the part that does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stageline::executor {

/// The first core, by /proc/cpuinfo.
struct Cpu {
  std::string model = "unknown CPU";
  bool avx2_fma = false;  ///< AVX2 and fused multiply-add
  bool avx512 = false;    ///< F, CD, BW, DQ and VL: what Skylake-X has
};
Cpu parse_cpuinfo(std::string_view text);
Cpu this_cpu();

/// The kernels OpenBLAS should use on `cpu` (a value of OPENBLAS_CORETYPE), or an empty text if its
/// own choice will do. `chosen` is that choice, as openblas_get_corename() spells it: a CPU newer
/// than the library is taken for a Prescott of 2004, at a fifth of its speed.
std::string better_core_type(std::string_view chosen, const Cpu& cpu);

/// The threads that a matrix product runs in.
enum class BlasThreads {
  caller,  ///< the caller's alone, whatever number is set
  own,     ///< a pool beside OpenMP's
  shared,  ///< OpenMP's pool, with LibTorch
};

/// The library behind sgemm in this process; `name` is empty where there is none.
struct Blas {
  std::string name;       ///< "OpenBLAS 0.3.21, SkylakeX kernels"
  std::string file;       ///< the library file, links followed
  std::string core_type;  ///< of OpenBLAS: the CPU that its kernels are for; else empty
  BlasThreads threads = BlasThreads::shared;
};
/// Why threads that call this BLAS at the same time may get wrong products, and the remedy; empty
/// where they may call it. OpenBLAS locks its work buffers only in the build with its own threads.
std::string unfit_for_lanes(const Blas& blas);
Blas loaded_blas();

/// Call it first in main. Makes OpenBLAS use the kernels for this CPU: it reads OPENBLAS_CORETYPE
/// when it is loaded, before main; where that is unset and its choice is a bad one, this sets it
/// and starts the program again (once, since it is set then; other BLASs and a user's own setting
/// are left alone), with OPENBLAS_NUM_THREADS=1 where that is unset: an unused pool would start and
/// spin. Then makes malloc keep freed memory: fresh pages for each tensor add up to a fifth to a
/// backward pass. Returns what could not be done, one sentence each. `argv` is main's, and ends in
/// a null pointer.
std::vector<std::string> prepare_process(char** argv);

/// The cores this thread may run on, ascending.
std::vector<int> allowed_cores();

/// Keeps this thread, and the threads it starts from now on, on these cores; so call it before the
/// first tensor operation. Throws UsageError, and changes nothing, for no core or one that does not
/// exist or that the process may not use.
void pin_to_cores(const std::vector<int>& cores);

/// {0, 1, 2, 5} is "0-2,5".
std::string print_cores(const std::vector<int>& cores);

/// The first number with dots in a library's sentence about itself ("…Library Version
/// 2024.2-Product …" is "2024.2"), or an empty text.
std::string version_in(std::string_view text);

/// 10^9 floating-point operations a second of multiply-adds on registers, in one thread: this
/// core's peak at its present clock. The best of several runs of a millisecond.
double fma_gflops(const Cpu& cpu);

/// What a measuring process runs on.
struct ProcessReport {
  std::string libtorch;  ///< "2.13.0+cpu"
  std::string onednn;    ///< "3.12.0"; empty: built without
  Blas blas;
  Cpu cpu;
  int threads = 1;          ///< of one operation
  std::vector<int> cores;   ///< that it may run on
  double sgemm_gflops = 0;  ///< 10^9 operations a second of a matrix product, in one thread
  double fma_gflops = 0;    ///< that core's peak with AVX2 (see fma_gflops)
};

/// "LibTorch 2.13.0+cpu, oneDNN 3.12.0, MKL 2024.2; AMD EPYC, 2 threads on cores 0-1; sgemm …".
std::string print(const ProcessReport& report);

/// Reasons to doubt measurements of this process, one sentence each: a BLAS below `slow_blas` of
/// the core's speed, threads that a matrix product does not use or that share cores.
std::vector<std::string> warnings(const ProcessReport& report);

/// sgemm over fma_gflops. Tuned kernels reach 0.7 and more (above 1 with AVX-512), OpenBLAS's for a
/// Prescott about 0.3 on AVX2, the reference BLAS 0.03.
inline constexpr double slow_blas = 0.4;

}  // namespace stageline::executor
