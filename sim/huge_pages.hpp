// Huge pages for large buffers, where the system has them.
#pragma once

#include <cstddef>

namespace stageline {

/// Asks for huge pages (2 MB rather than 4 kB) inside an address range that has not been written
/// yet: filling it then takes far fewer page faults. A hint without other effect; ranges that hold
/// no huge page, and systems other than Linux, are left alone.
void prefer_huge_pages(void* begin, std::size_t bytes);

}  // namespace stageline
