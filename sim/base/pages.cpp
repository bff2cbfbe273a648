// Requests to the system about memory.
#include "sim/base/pages.hpp"

#ifdef __linux__
#include <sys/mman.h>

#include <cstdint>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace stageline {

void prefer_huge_pages(void* data, std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t page = std::uintptr_t{1} << 21;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + bytes) / page * page;
  if (last > first)
    madvise(static_cast<char*>(data) + (first - begin), last - first, MADV_HUGEPAGE);
#else
  (void)data;
  (void)bytes;
#endif
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int largest_on_the_heap = 32 << 20;  // bytes; glibc maps larger blocks in any case
  ::mallopt(M_MMAP_THRESHOLD, largest_on_the_heap);
  ::mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

}  // namespace stageline
