#include "sim/base/block_allocator.hpp"

#include <cstdint>
#include <functional>
#include <new>

#include "sim/base/pages.hpp"

namespace stageline {
namespace {

constexpr std::size_t line = 64;
// Between one vector and the next. Vectors of equal size that grow in step would otherwise compete
// for the same sets of the cache: their distance is often a multiple of a page.
constexpr std::size_t stagger = 5 * line;

}  // namespace

Block::Block(std::size_t bytes)
    : size_(bytes), begin_(static_cast<std::byte*>(::operator new(bytes))) {
  prefer_huge_pages(begin_, bytes);
}

Block::~Block() { ::operator delete(begin_); }

std::size_t Block::room_for(std::size_t bytes) {
  return (bytes + line - 1) / line * line + stagger;
}

void* Block::take(std::size_t bytes) {
  const std::size_t at = used_.fetch_add(room_for(bytes));
  return at <= size_ && bytes <= size_ - at ? begin_ + at : nullptr;
}

bool Block::owns(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  return !std::less<>()(at, begin_) && std::less<>()(at, begin_ + size_);
}

}  // namespace stageline
