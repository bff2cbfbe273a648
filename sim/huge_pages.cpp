#include "sim/huge_pages.hpp"

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace stageline {

void prefer_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t huge = std::size_t{2} << 20;
  const std::size_t skipped = (huge - reinterpret_cast<std::uintptr_t>(begin) % huge) % huge;
  if (bytes < skipped + huge) return;
  madvise(static_cast<std::byte*>(begin) + skipped, (bytes - skipped) / huge * huge, MADV_HUGEPAGE);
#endif
}

}  // namespace stageline
