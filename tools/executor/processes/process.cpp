// Prepares a process for measurements and reports what it runs on.
#include "tools/executor/processes/process.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "sim/base/errors.hpp"

namespace stageline::executor {
namespace {

constexpr const char* core_type_variable = "OPENBLAS_CORETYPE";

// The value of the first line "key : value" with that key.
std::string_view field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || line.substr(0, key.size()) != key ||
        line.find_first_not_of(" \t", key.size()) != colon) {
      continue;
    }
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string_view::npos ? std::string_view{} : line.substr(start);
  }
  return {};
}

bool has_word(std::string_view words, std::string_view word) {
  for (auto at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

// A function of a library that may not be there; null then.
template <class Function>
Function* loaded(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

std::string file_of(const char* function) {
  Dl_info where{};
  void* const address = ::dlsym(RTLD_DEFAULT, function);
  if (address == nullptr || ::dladdr(address, &where) == 0 || where.dli_fname == nullptr) return "";
  std::array<char, PATH_MAX> path{};
  return ::realpath(where.dli_fname, path.data()) != nullptr ? path.data() : where.dli_fname;
}

cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::pthread_getaffinity_np(::pthread_self(), sizeof set, &set);
  return set;
}

// Starts this program again with one more variable. Returns only where that fails.
std::vector<std::string> start_again_with(const std::string& core_type, char** argv) {
  if (::setenv(core_type_variable, core_type.c_str(), 1) == 0 &&
      ::setenv("OPENBLAS_NUM_THREADS", "1", 0) == 0) {
    // The link leads to this very file even if another has taken its place since.
    ::execv("/proc/self/exe", argv);
  }
  return {
      fmt::format("OpenBLAS uses the wrong kernels for this CPU and the program could not be "
                  "started again to change that ({}); start it with {}={}",
                  std::strerror(errno), core_type_variable, core_type)};
}

}  // namespace

Cpu parse_cpuinfo(std::string_view text) {
  Cpu cpu;
  const std::string_view flags = field(text, "flags");
  const auto has = [&](std::string_view flag) { return has_word(flags, flag); };
  if (const auto model = field(text, "model name"); !model.empty()) cpu.model = model;
  cpu.avx2_fma = has("avx2") && has("fma");
  cpu.avx512 = cpu.avx2_fma && has("avx512f") && has("avx512cd") && has("avx512bw") &&
               has("avx512dq") && has("avx512vl");
  return cpu;
}

Cpu this_cpu() {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_cpuinfo(text);
}

std::string better_core_type(std::string_view chosen, const Cpu& cpu) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), chosen) != names.end();
  };
  if (is_one_of({"SkylakeX", "Cooperlake", "Sapphirerapids"})) return "";
  if (cpu.avx512) return "SkylakeX";
  if (is_one_of({"Haswell", "Zen"})) return "";
  return cpu.avx2_fma ? "Haswell" : "";
}

Blas loaded_blas() {
  Blas blas;
  blas.file = file_of("sgemm_");
  if (blas.file.empty()) return blas;
  if (auto* const config = loaded<const char*()>("openblas_get_config")) {
    if (auto* const core = loaded<const char*()>("openblas_get_corename")) blas.core_type = core();
    blas.name = fmt::format("OpenBLAS {}, {} kernels", version_in(config()), blas.core_type);
    auto* const parallel = loaded<int()>("openblas_get_parallel");
    const int kind = parallel == nullptr ? 0 : parallel();  // 0 none, 1 its own, 2 OpenMP's
    blas.threads = kind == 0   ? BlasThreads::caller
                   : kind == 1 ? BlasThreads::own
                               : BlasThreads::shared;
  } else if (blas.file.find("/blas/libblas.so") != std::string::npos) {  // Debian's libblas3
    blas.name = "reference BLAS";
    blas.threads = BlasThreads::caller;
  } else {
    blas.name = blas.file.substr(blas.file.rfind('/') + 1);
  }
  return blas;
}

std::string unfit_for_lanes(const Blas& blas) {
  if (blas.core_type.empty() || blas.threads == BlasThreads::own) return "";
  return fmt::format(
      "this {} ({}) gives wrong products where several threads call it, as CPU lanes do; install "
      "libopenblas0-pthread",
      blas.name, blas.file.substr(blas.file.rfind('/') + 1));
}

std::vector<std::string> prepare_process(char** argv) {
  std::vector<std::string> not_done;
  const char* const set = std::getenv(core_type_variable);
  if (const Blas blas = loaded_blas(); !blas.core_type.empty() && (set == nullptr || *set == 0)) {
    const std::string better = better_core_type(blas.core_type, this_cpu());
    if (!better.empty()) not_done = start_again_with(better, argv);
  }
#ifdef __GLIBC__
  // No mapping for a large block, none given back, and room ahead: the heap grows in few steps and
  // its pages stay. Another malloc in glibc's place may take none of these.
  constexpr int room_ahead = 64 << 20;  // bytes
  // One heap for all threads: those of others are too small for large blocks and map them anew.
  if (::mallopt(M_MMAP_MAX, 0) == 0 || ::mallopt(M_TRIM_THRESHOLD, -1) == 0 ||
      ::mallopt(M_TOP_PAD, room_ahead) == 0) {
    not_done.emplace_back(
        "malloc does not keep its pages: this process runs with another allocator than glibc's, so "
        "page faults may be in the times");
  }
#endif
  return not_done;
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  const cpu_set_t set = affinity();
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void pin_to_cores(const std::vector<int>& cores) {
  if (cores.empty()) throw UsageError("at least one core is needed to run on, and none was given");
  const cpu_set_t before = affinity();
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int core : cores) {
    if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &wanted);
  }
  // The kernel takes from a set what exists and is allowed, and refuses a set of nothing else.
  ::pthread_setaffinity_np(::pthread_self(), sizeof wanted, &wanted);
  const std::vector<int> got = allowed_cores();
  for (const int core : cores) {
    if (std::binary_search(got.begin(), got.end(), core)) continue;
    std::memset(&wanted, 0xff, sizeof wanted);
    ::pthread_setaffinity_np(::pthread_self(), sizeof wanted, &wanted);
    const std::string possible = print_cores(allowed_cores());
    ::pthread_setaffinity_np(::pthread_self(), sizeof before, &before);
    throw UsageError(
        fmt::format("core {} cannot be used; the cores that this process may run on are "
                    "{}",
                    core, possible));
  }
}

std::string print_cores(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t first = 0, next = 0; first < cores.size(); first = next) {
    for (next = first + 1; next < cores.size() && cores[next] == cores[next - 1] + 1;) ++next;
    if (!text.empty()) text += ',';
    text += std::to_string(cores[first]);
    if (next - first > 1) text += fmt::format("-{}", cores[next - 1]);
  }
  return text;
}

std::string version_in(std::string_view text) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (auto at = text.begin(); at != text.end();) {
    const auto start = std::find_if(at, text.end(), digit);
    at = std::find_if(start, text.end(), [&](char c) { return !digit(c) && c != '.'; });
    std::string found(start, at);
    while (!found.empty() && found.back() == '.') found.pop_back();
    if (found.find('.') != std::string::npos) return found;
  }
  return "";
}

std::string print(const ProcessReport& report) {
  return fmt::format(
      "LibTorch {}{}, {}; {}, {} thread{} on core{} {}; sgemm {:.3g} GFLOP/s a thread "
      "(multiply-adds on AVX2 registers: {:.3g})",
      report.libtorch, report.onednn.empty() ? "" : ", oneDNN " + report.onednn, report.blas.name,
      report.cpu.model, report.threads, report.threads == 1 ? "" : "s",
      report.cores.size() == 1 ? "" : "s", print_cores(report.cores), report.sgemm_gflops,
      report.fma_gflops);
}

std::vector<std::string> warnings(const ProcessReport& report) {
  std::vector<std::string> found;
  const Blas& blas = report.blas;
  if (report.sgemm_gflops < slow_blas * report.fma_gflops) {
    const std::string core_type = better_core_type(blas.core_type, report.cpu);
    std::string hint = "install libopenblas0-pthread";
    if (!blas.core_type.empty()) {
      hint = core_type.empty() ? "is the machine busy?"
                               : fmt::format("set {}={}", core_type_variable, core_type);
    }
    found.push_back(
        fmt::format("slow BLAS: sgemm runs at {:.3g} GFLOP/s in one thread where this core does "
                    "{:.3g}, so layers "
                    "made of matrix products look too slow ({}, {}); {}",
                    report.sgemm_gflops, report.fma_gflops, blas.name,
                    blas.file.substr(blas.file.rfind('/') + 1), hint));
  }
  if (report.threads > 1 && blas.threads == BlasThreads::caller) {
    found.push_back(
        fmt::format("matrix products run in 1 thread, not in {}: {} has no threads; use 1 thread, "
                    "or a LibTorch "
                    "with MKL (a Python torch package has)",
                    report.threads, blas.name));
  }
  if (report.threads > 1 && blas.threads == BlasThreads::own) {
    found.push_back(
        fmt::format("matrix products run in threads of {}'s own, which disturb each "
                    "other and LibTorch's; use 1 thread, or a LibTorch with MKL (a Python torch "
                    "package has)",
                    blas.name));
  }
  if (report.threads > static_cast<int>(report.cores.size())) {
    found.push_back(
        fmt::format("{} threads share {} core{}, so times include waiting for each other",
                    report.threads, report.cores.size(), report.cores.size() == 1 ? "" : "s"));
  }
  return found;
}

}  // namespace stageline::executor
