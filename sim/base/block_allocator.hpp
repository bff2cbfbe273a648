// One block of memory for the elements of many vectors: one allocation, in huge pages where large.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace stageline {

/// Memory that is handed out front to back and freed as a whole.
class Block {
 public:
  explicit Block(std::size_t bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// The room that take() uses: `bytes` and a gap to the next.
  static std::size_t room_for(std::size_t bytes);
  /// The next `bytes` bytes, aligned for every type; null when fewer are left.
  void* take(std::size_t bytes);
  bool owns(const void* address) const;

 private:
  std::size_t size_;
  std::byte* begin_;
  std::atomic<std::size_t> used_{0};
};

/// Allocates from a block while it has room, and else from the heap. The block lives as long as
/// the last vector that uses it. Copies of a vector are on the heap.
template <class T>
class BlockAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  BlockAllocator() = default;
  explicit BlockAllocator(std::shared_ptr<Block> block) : block_(std::move(block)) {}
  template <class U>
  explicit BlockAllocator(const BlockAllocator<U>& other) : block_(other.block()) {}

  T* allocate(std::size_t count) {
    void* const room = block_ ? block_->take(count * sizeof(T)) : nullptr;
    return room != nullptr ? static_cast<T*>(room) : std::allocator<T>().allocate(count);
  }
  void deallocate(T* items, std::size_t count) {
    if (!block_ || !block_->owns(items)) std::allocator<T>().deallocate(items, count);
  }
  BlockAllocator select_on_container_copy_construction() const { return BlockAllocator(); }
  const std::shared_ptr<Block>& block() const { return block_; }

  friend bool operator==(const BlockAllocator& a, const BlockAllocator& b) {
    return a.block_ == b.block_;
  }

 private:
  std::shared_ptr<Block> block_;
};

}  // namespace stageline
