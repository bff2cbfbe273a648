// Writes tensors as blocks of bytes and reads them.
#include "tools/executor/processes/message.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

static_assert(std::is_trivially_copyable_v<Head>);
constexpr auto head_size = static_cast<std::int64_t>(sizeof(Head));

at::Tensor byte_tensor(std::int64_t size) { return at::empty({size}, at::kByte); }

std::int64_t size_in_bytes(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

// The memory of a dense tensor, in blocks that keep it.
void add_blocks(const at::Tensor& tensor, std::vector<at::Tensor>& blocks) {
  auto* const start = static_cast<std::uint8_t*>(tensor.data_ptr());
  const std::int64_t size = size_in_bytes(tensor);
  for (std::int64_t at = 0; at < size; at += largest_block) {
    blocks.push_back(at::from_blob(
        start + at, {std::min(largest_block, size - at)}, [tensor](void*) {},
        at::TensorOptions(at::kByte)));
  }
}

// Describes each tensor: type, number of dimensions, sizes, strides.
std::vector<std::int64_t> describe(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
    all.push_back(tensor.dim());
    for (const std::int64_t size : tensor.sizes()) all.push_back(size);
    for (const std::int64_t stride : tensor.strides()) all.push_back(stride);
  }
  return all;
}

// The next `count` numbers of a description; throws where it ends before.
class Numbers {
 public:
  explicit Numbers(std::vector<std::int64_t> all) : all_(std::move(all)) {}
  at::IntArrayRef take(std::int64_t count) {
    if (count < 0 || count > static_cast<std::int64_t>(all_.size() - at_))
      throw std::runtime_error("a message describes its tensors wrongly");
    const at::IntArrayRef taken(all_.data() + at_, as_size(count));
    at_ += as_size(count);
    return taken;
  }

 private:
  std::vector<std::int64_t> all_;
  std::size_t at_ = 0;
};

std::uint8_t* data(const at::Tensor& bytes) { return bytes.data_ptr<std::uint8_t>(); }

}  // namespace

at::Tensor sendable(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
    throw UsageError(
        fmt::format("a tensor of type {} cannot go to another process: only dense "
                    "tensors can, and neither sparse nor quantized ones",
                    tensor.toString()));
  }
  const at::Tensor plain = tensor.detach().to(at::Device(at::kCPU)).resolve_conj().resolve_neg();
  return plain.is_non_overlapping_and_dense() ? plain : plain.contiguous();
}

Blocks write_blocks(Head head, const std::vector<at::Tensor>& tensors) {
  const std::vector<std::int64_t> description = describe(tensors);
  head.tensors = static_cast<std::uint32_t>(tensors.size());
  head.details = description.size() * sizeof(std::int64_t);
  const auto details = static_cast<std::int64_t>(head.details);
  std::int64_t content = 0;
  for (const at::Tensor& tensor : tensors) content += size_in_bytes(tensor);
  head.within = head_size + details + content <= first_block ? 1 : 0;
  const bool described = head_size + details <= first_block;

  Blocks blocks;
  blocks.first = byte_tensor(head_size + (described ? details : 0) + (head.within ? content : 0));
  std::uint8_t* next = data(blocks.first);
  std::memcpy(next, &head, sizeof head);
  next += head_size;
  if (details > 0 && described) {
    std::memcpy(next, description.data(), head.details);
    next += details;
  } else if (details > 0) {
    blocks.rest.push_back(byte_tensor(details));
    std::memcpy(data(blocks.rest[0]), description.data(), head.details);
  }
  for (const at::Tensor& tensor : tensors) {
    const std::int64_t size = size_in_bytes(tensor);
    if (size == 0) continue;
    if (head.within == 0) {
      add_blocks(tensor, blocks.rest);
    } else {
      std::memcpy(next, tensor.data_ptr(), as_size(size));
      next += size;
    }
  }
  return blocks;
}

void set_sent(at::Tensor& first, std::int64_t nanoseconds) {
  std::memcpy(data(first) + offsetof(Head, sent), &nanoseconds, sizeof nanoseconds);
}

Arriving::Arriving(const at::Tensor& first) : first_(first) {
  std::memcpy(&head, data(first), sizeof head);
  const auto details = static_cast<std::int64_t>(head.details);
  if (head_size + details > first_block) description = byte_tensor(details);
}

std::vector<at::Tensor> Arriving::make_room() {
  const std::uint8_t* next = data(first_) + head_size;
  std::vector<std::int64_t> numbers(head.details / sizeof(std::int64_t));
  if (description.defined()) {
    std::memcpy(numbers.data(), data(description), head.details);
  } else if (!numbers.empty()) {
    std::memcpy(numbers.data(), next, head.details);
    next += head.details;
  }
  Numbers description_of(std::move(numbers));
  std::vector<at::Tensor> blocks;
  for (std::uint32_t i = 0; i < head.tensors; ++i) {
    const auto type = static_cast<at::ScalarType>(description_of.take(1)[0]);
    const std::int64_t dimensions = description_of.take(1)[0];
    const at::IntArrayRef sizes = description_of.take(dimensions);
    const at::IntArrayRef strides = description_of.take(dimensions);
    const at::Tensor tensor = at::empty_strided(sizes, strides, at::TensorOptions(type));
    const std::int64_t size = size_in_bytes(tensor);
    if (head.within == 0) {
      add_blocks(tensor, blocks);
    } else if (size > 0) {
      std::memcpy(tensor.data_ptr(), next, as_size(size));
      next += size;
    }
    tensors.push_back(tensor);
  }
  return blocks;
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = byte_tensor(static_cast<std::int64_t>(text.size()));
  if (!text.empty()) std::memcpy(data(bytes), text.data(), text.size());
  return bytes;
}

std::string text_of(const at::Tensor& bytes) {
  if (bytes.numel() == 0) return "";
  return {reinterpret_cast<const char*>(data(bytes)), as_size(bytes.numel())};
}

}  // namespace stageline::executor
