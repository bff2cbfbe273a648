// Instrumented code calls this file instead of libFuzzer (-Wl,--wrap).
//
// Counters: their pages are read-only. The first write to a page faults, and the handler opens it.
// Behind each execution the open pages are searched for blocks that have been written, which are
// added to those of libFuzzer. That goes through its own at every execution, eight bytes at a time:
// of whole pages, a fifth of the time.
//
// Comparisons: libFuzzer keeps the operands of recent ones, to try them in inputs. It also computes
// features of each, which only -use_value_profile=1 reads: up to a third of the time. So it gets a
// sample.
#include "tests/fuzz/counters.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define STAGELINE_NO_COVERAGE __attribute__((no_sanitize("coverage")))
#define STAGELINE_BARE __attribute__((no_sanitize("coverage", "address", "undefined")))

// NOLINTBEGIN(bugprone-reserved-identifier,cppcoreguidelines-avoid-non-const-global-variables)
extern "C" {
void __real___sanitizer_cov_8bit_counters_init(std::uint8_t* begin, std::uint8_t* end);
void __real___sanitizer_cov_pcs_init(const std::uintptr_t* begin, const std::uintptr_t* end);
}

namespace stageline::fuzz {
namespace {

std::uint8_t* counters = nullptr;
std::uint8_t* counters_end = nullptr;
const std::uintptr_t* places = nullptr;  // two words a counter
std::uint8_t* guarded = nullptr;         // whole pages of counters
std::uint8_t* guarded_end = nullptr;
std::size_t page = 0;
struct sigaction before = {};

// libFuzzer has room for 4096 pieces of counters, and does not look.
constexpr std::size_t most_blocks = 4000;
constexpr std::size_t least_block = 64;
std::size_t block = 0;                 // divides a page
std::vector<std::uint8_t*> unwritten;  // blocks of open pages; all that there can be have room

constexpr unsigned sampled = 17;  // one of so many; prime, since loops rarely repeat so often
unsigned until_sample = sampled;

STAGELINE_BARE __attribute__((always_inline)) inline bool is_sampled() {
  if (--until_sample != 0) return false;
  until_sample = sampled;
  return true;
}

STAGELINE_NO_COVERAGE void watch(std::uint8_t* begin, std::uint8_t* end) {
  __real___sanitizer_cov_8bit_counters_init(begin, end);
  __real___sanitizer_cov_pcs_init(places + 2 * (begin - counters), places + 2 * (end - counters));
}

STAGELINE_NO_COVERAGE void on_fault(int number, siginfo_t* info, void* context) {
  auto* const at = static_cast<std::uint8_t*>(info->si_addr);
  if (at < guarded || at >= guarded_end) {
    if (before.sa_sigaction == nullptr) std::abort();  // which libFuzzer reports
    before.sa_sigaction(number, info, context);
    return;
  }
  std::uint8_t* const begin = at - reinterpret_cast<std::uintptr_t>(at) % page;
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) std::abort();
  for (std::size_t i = 0; i < page; i += block) unwritten.push_back(begin + i);
}

STAGELINE_NO_COVERAGE bool is_written(const std::uint8_t* begin) {
  std::uint64_t any = 0;
  for (const std::uint8_t* at = begin; at < begin + block; at += least_block) {
    std::uint64_t words[least_block / sizeof(std::uint64_t)];
    std::memcpy(words, at, least_block);
    for (const std::uint64_t word : words) any |= word;
  }
  return any != 0;
}

}  // namespace

STAGELINE_NO_COVERAGE void watch_all_counters() {
  if (counters != nullptr) watch(counters, counters_end);
}

STAGELINE_NO_COVERAGE void watch_written_counters() {
  for (std::size_t i = 0; i < unwritten.size();) {
    std::uint8_t* const begin = unwritten[i];
    if (!is_written(begin)) {
      ++i;
      continue;
    }
    watch(begin, begin + block);
    unwritten[i] = unwritten.back();
    unwritten.pop_back();
  }
}

STAGELINE_NO_COVERAGE void guard_counters() {
  page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto over = [](const std::uint8_t* at) {
    return reinterpret_cast<std::uintptr_t>(at) % page;
  };
  if (static_cast<std::size_t>(counters_end - counters) < 2 * page) return watch_all_counters();
  guarded = counters + (page - over(counters)) % page;
  guarded_end = counters_end - over(counters_end);
  const auto all = static_cast<std::size_t>(guarded_end - guarded);
  block = least_block;
  while (all / block > most_blocks && block < page) block *= 2;
  unwritten.reserve(all / block);
  if (guarded > counters) watch(counters, guarded);
  if (guarded_end < counters_end) watch(guarded_end, counters_end);
  // AddressSanitizer has an alternate stack already.
  static std::uint8_t stack[1 << 16];
  stack_t other = {};
  if (sigaltstack(nullptr, &other) == 0 && (other.ss_flags & SS_DISABLE) != 0) {
    other = {stack, 0, sizeof(stack)};
    sigaltstack(&other, nullptr);
  }
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  if (sigaction(SIGSEGV, &action, &before) != 0 || mprotect(guarded, all, PROT_READ) != 0) {
    std::fputs("the counters cannot be guarded\n", stderr);
    std::exit(2);
  }
}

}  // namespace stageline::fuzz

extern "C" STAGELINE_NO_COVERAGE void __wrap___sanitizer_cov_8bit_counters_init(std::uint8_t* begin,
                                                                                std::uint8_t* end) {
  stageline::fuzz::counters = begin;
  stageline::fuzz::counters_end = end;
}

extern "C" STAGELINE_NO_COVERAGE void __wrap___sanitizer_cov_pcs_init(const std::uintptr_t* begin,
                                                                      const std::uintptr_t*) {
  stageline::fuzz::places = begin;
}

#define STAGELINE_COMPARISON(name, number)                                  \
  extern "C" void __real_##name(number, number);                            \
  extern "C" STAGELINE_BARE void __wrap_##name(number left, number right) { \
    if (stageline::fuzz::is_sampled()) __real_##name(left, right);          \
  }
STAGELINE_COMPARISON(__sanitizer_cov_trace_cmp1, std::uint8_t)
STAGELINE_COMPARISON(__sanitizer_cov_trace_cmp2, std::uint16_t)
STAGELINE_COMPARISON(__sanitizer_cov_trace_cmp4, std::uint32_t)
STAGELINE_COMPARISON(__sanitizer_cov_trace_cmp8, std::uint64_t)
STAGELINE_COMPARISON(__sanitizer_cov_trace_const_cmp1, std::uint8_t)
STAGELINE_COMPARISON(__sanitizer_cov_trace_const_cmp2, std::uint16_t)
STAGELINE_COMPARISON(__sanitizer_cov_trace_const_cmp4, std::uint32_t)
STAGELINE_COMPARISON(__sanitizer_cov_trace_const_cmp8, std::uint64_t)

extern "C" void __real___sanitizer_weak_hook_memcmp(void* caller, const void* left,
                                                    const void* right, std::size_t size,
                                                    int result);
extern "C" STAGELINE_BARE void __wrap___sanitizer_weak_hook_memcmp(void* caller, const void* left,
                                                                   const void* right,
                                                                   std::size_t size, int result) {
  if (stageline::fuzz::is_sampled()) {
    __real___sanitizer_weak_hook_memcmp(caller, left, right, size, result);
  }
}
// NOLINTEND(bugprone-reserved-identifier,cppcoreguidelines-avoid-non-const-global-variables)
