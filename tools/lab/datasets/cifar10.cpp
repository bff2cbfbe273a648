// CIFAR-10, binary version: data_batch_1.bin to _5 and test_batch.bin, each any number of records
// of 1 byte label and 3 × 32 × 32 bytes, red first, row by row (cs.toronto.edu/~kriz/cifar.html).
#include <fmt/core.h>

#include <array>
#include <filesystem>

#include "sim/base/errors.hpp"
#include "tools/lab/datasets/file_bytes.hpp"
#include "tools/lab/datasets/kinds.hpp"

namespace stageline::lab {
namespace {

constexpr int cifar10_classes = 10;
constexpr int side = 32;
constexpr std::size_t image_size = std::size_t{3} * side * side;
constexpr std::size_t record = 1 + image_size;

void append(Dataset& set, const FileBytes& from) {
  const std::size_t whole = from.bytes.size() / record;
  const std::size_t rest = from.bytes.size() % record;
  if (rest != 0) {
    throw TraceError(
        from.file, fmt::format("byte {}", whole * record),
        fmt::format("the file is {} bytes, which is {} records of {} and {} bytes more: it was cut "
                    "off ({} bytes of this record are missing), or is not the binary version",
                    from.bytes.size(), whole, record, rest, record - rest));
  }
  for (std::size_t i = 0; i < whole; ++i) {
    const auto begin = from.bytes.begin() + static_cast<std::ptrdiff_t>(i * record);
    const auto label = static_cast<std::uint8_t>(*begin);
    if (label >= cifar10_classes) {
      throw TraceError(from.file, fmt::format("byte {}", i * record),
                       fmt::format("the label of image {} is {}; labels are from 0 to {}", i, label,
                                   cifar10_classes - 1));
    }
    set.labels.push_back(label);
    set.pixels.insert(set.pixels.end(), begin + 1, begin + static_cast<std::ptrdiff_t>(record));
  }
}

constexpr std::array<DataOption, 2> cifar10_options{{
    {"train", 1, UINT32_MAX, 0, "training images, the first of the files"},
    {"test", 1, UINT32_MAX, 0, "test images, the first of the file"},
}};

DataParts open_cifar10(const std::string& folder, const DataOptions&) {
  const std::filesystem::path inner = std::filesystem::path(folder) / "cifar-10-batches-bin";
  std::error_code ignored;
  const std::string where = std::filesystem::is_directory(inner, ignored) ? inner.string() : folder;
  const Dataset empty{3, side, side, cifar10_classes, {}, {}};
  DataParts parts{empty, empty};
  for (int i = 1; i <= 5; ++i) {
    append(parts.train, first_of(where, {fmt::format("data_batch_{}.bin", i)}));
  }
  append(parts.test, first_of(where, {"test_batch.bin"}));
  return parts;
}

}  // namespace

extern const DataKind cifar10_data{"cifar10", "cifar10:FOLDER",
                                   "CIFAR-10 (Krizhevsky 2009), 32x32 colour photographs",
                                   cifar10_options, open_cifar10};

}  // namespace stageline::lab
