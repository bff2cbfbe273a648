// Tensors as messages between processes: a first block with a description, and with the tensors'
// bytes if these are few; otherwise further blocks, which are the tensors' own memory.
//
//     within the first block                    too much for it
//     ┌──────┬─────────┬──────────────┐         ┌──────┬─────────┐ ┌────────────┐ ┌─────────
//     │ Head │ details │ tensor bytes │         │ Head │ details │ │ of tensor 0│ │ of tensor 1 …
//     └──────┴─────────┴──────────────┘         └──────┴─────────┘ └────────────┘ └─────────
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stageline::executor {

enum class Kind : std::uint32_t {
  delivery,   ///< tensors of a task
  text,       ///< for rank 0, which gathers them
  arrived,    ///< the sender is at a barrier
  all_there,  ///< all are at that barrier
  ping,       ///< asks for the receiver's clock
  pong,       ///< answers a ping
  alive,      ///< a sign of life
  failed,     ///< the sender has failed: why, as a text
  bye,        ///< the last message
};

/// The start of every message. Both ends run the same program on the same kind of machine.
struct Head {
  Kind kind = Kind::alive;
  std::uint32_t task = 0;
  std::int64_t at = 0;    ///< ns: of a delivery, when the task was done, on the common clock; of a
                          ///< pong, when the ping came, on the clock of the one that answers
  std::int64_t sent = 0;  ///< ns: when the message was sent, on the sender's clock
  std::int64_t echo = 0;  ///< of a pong: `sent` of the ping
  std::uint64_t details = 0;  ///< bytes that describe the tensors
  std::uint32_t tensors = 0;
  std::uint32_t within = 0;  ///< 1: the tensors' bytes are in the first block
};

/// Bytes of the largest first block. Larger blocks mean more copying; smaller ones more messages in
/// several blocks, for which the receiver must first allocate.
inline constexpr std::int64_t first_block = 64 << 10;
/// Bytes of the largest further block: after each one the receiver knows that its peer lives.
inline constexpr std::int64_t largest_block = 16 << 20;

/// A message as the one-dimensional byte tensors to be sent, in order.
struct Blocks {
  at::Tensor first;
  std::vector<at::Tensor> rest;
};

/// `tensor` in a form that can be sent: on the CPU, without gradient, dense in memory; the same
/// tensor where it is so already. Throws UsageError for one that is sparse or quantized.
at::Tensor sendable(const at::Tensor& tensor);

/// Blocks of a message with these tensors, each sendable(). They share the tensors' memory.
Blocks write_blocks(Head head, const std::vector<at::Tensor>& tensors);

/// Puts a time into a first block.
void set_sent(at::Tensor& first, std::int64_t nanoseconds);

/// A message that is arriving: the content of its first block, and tensors with room for the
/// further blocks.
struct Arriving {
  explicit Arriving(const at::Tensor& first);
  /// Where the description must be received before make_room(), if it is not in the first block;
  /// else undefined.
  at::Tensor description;
  /// Allocates the tensors. Returns the blocks that must be received into them.
  std::vector<at::Tensor> make_room();

  Head head;
  std::vector<at::Tensor> tensors;

 private:
  at::Tensor first_;
};

/// Bytes as a tensor, and back.
at::Tensor bytes_of(const std::string& text);
std::string text_of(const at::Tensor& bytes);

}  // namespace stageline::executor
