// Room for large arrays, in huge pages where the system has them: the first touch of four million
// small pages takes longer than what is written to them.
#pragma once

#include <cstddef>
#include <vector>

namespace stageline {

/// Asks for huge pages behind `bytes` bytes at `data` that have not been written yet. A hint: where
/// the system does not know it, or the range holds no whole huge page, nothing happens.
void prefer_huge_pages(void* data, std::size_t bytes);

/// Keeps freed memory in the process, where the C library is glibc: for a program that lowers and
/// simulates again and again, and would otherwise touch new pages for every graph. For the main
/// program to decide; the library never calls it.
void keep_freed_memory();

/// vector.reserve(count), in huge pages if that is large.
template <class T>
void reserve_pages(std::vector<T>& items, std::size_t count) {
  if (count <= items.capacity()) return;
  items.reserve(count);
  prefer_huge_pages(items.data(), items.capacity() * sizeof(T));
}

}  // namespace stageline
