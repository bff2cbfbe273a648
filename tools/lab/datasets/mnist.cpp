// Reads MNIST and data in its format (Fashion-MNIST): four IDX files, with the big-endian bytes
//   images  magic 0x00000803, images, rows, columns (4 bytes each), then a byte a pixel
//   labels  magic 0x00000801, labels, then a byte a label
// (yann.lecun.com/exdb/mnist; 0x08: bytes, 0x03 and 0x01: dimensions).
#include <fmt/core.h>

#include <array>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/lab/datasets/file_bytes.hpp"
#include "tools/lab/datasets/kinds.hpp"

namespace stageline::lab {
namespace {

constexpr int mnist_classes = 10;
constexpr std::uint32_t image_magic = 0x803;
constexpr std::uint32_t label_magic = 0x801;

[[noreturn]] void refuse(const FileBytes& from, std::size_t byte, const std::string& message) {
  throw TraceError(from.file, fmt::format("byte {}", byte), message);
}

std::uint32_t word_at(const FileBytes& from, std::size_t byte) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    word = word << 8U | static_cast<std::uint8_t>(from.bytes[byte + i]);
  }
  return word;
}

void check_head(const FileBytes& from, std::size_t head, std::uint32_t magic, const char* what) {
  if (from.bytes.size() < head) {
    refuse(from, from.bytes.size(),
           fmt::format("the file ends within its first {} bytes, which say what it holds; "
                       "it was cut off: copy it again",
                       head));
  }
  const std::uint32_t found = word_at(from, 0);
  if (found != magic) {
    refuse(from, 0,
           fmt::format("IDX {} begin with the number 0x{:08x}, and this file with 0x{:08x}{}", what,
                       magic, found,
                       found == image_magic   ? ": it holds images"
                       : found == label_magic ? ": it holds labels"
                                              : ""));
  }
  if (word_at(from, 4) == 0) refuse(from, 4, fmt::format("the file holds no {}", what));
}

// Checks the size: `expected` bytes, according to the head.
void check_size(const FileBytes& from, std::uint64_t expected, const std::string& because) {
  const std::uint64_t found = from.bytes.size();
  if (found < expected) {
    refuse(from, from.bytes.size(),
           fmt::format("the file ends after {} of {} bytes ({}); it was cut off: copy it again",
                       found, expected, because));
  }
  if (found > expected) {
    refuse(from, as_size(expected),
           fmt::format("{} bytes follow the {} that the file should have ({})", found - expected,
                       expected, because));
  }
}

FileBytes idx_file(const std::string& folder, const std::string& part, const std::string& form) {
  const std::string dashed = part + "-" + form;
  const std::string dotted = part + "." + form;
  return first_of(folder, {dashed, dotted, dashed + ".gz", dotted + ".gz"});
}

Dataset read_part(const std::string& folder, const std::string& part) {
  const FileBytes images = idx_file(folder, part + "-images", "idx3-ubyte");
  constexpr std::size_t image_head = 16;
  check_head(images, image_head, image_magic, "images");
  const std::uint32_t count = word_at(images, 4);
  Dataset set{1, 0, 0, mnist_classes, {}, {}};
  for (const std::size_t byte : {std::size_t{8}, std::size_t{12}}) {
    constexpr std::uint32_t most = 1024;  // pixels
    const std::uint32_t pixels = word_at(images, byte);
    if (pixels < 1 || pixels > most) {
      refuse(images, byte,
             fmt::format("images have from 1 to {} {}, not {}", most,
                         byte == 8 ? "rows" : "columns", pixels));
    }
    (byte == 8 ? set.height : set.width) = static_cast<int>(pixels);
  }
  check_size(images, image_head + std::uint64_t{count} * set.image_size(),
             fmt::format("{} images of {} × {} pixels and a head of {}", count, set.width,
                         set.height, image_head));

  const FileBytes labels = idx_file(folder, part + "-labels", "idx1-ubyte");
  constexpr std::size_t label_head = 8;
  check_head(labels, label_head, label_magic, "labels");
  const std::uint32_t label_count = word_at(labels, 4);
  check_size(labels, label_head + std::uint64_t{label_count},
             fmt::format("{} labels and a head of {}", label_count, label_head));
  if (label_count != count) {
    refuse(
        labels, 4,
        fmt::format("there are {} labels, and {} images in {}", label_count, count, images.file));
  }
  set.pixels.assign(images.bytes.begin() + image_head, images.bytes.end());
  set.labels.assign(labels.bytes.begin() + label_head, labels.bytes.end());
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set.labels[i] >= mnist_classes) {
      refuse(labels, label_head + i,
             fmt::format("the label of image {} is {}; labels are from 0 to {}", i, set.labels[i],
                         mnist_classes - 1));
    }
  }
  return set;
}

constexpr std::array<DataOption, 2> mnist_options{{
    {"train", 1, UINT32_MAX, 0, "training images, the first of the file"},
    {"test", 1, UINT32_MAX, 0, "test images, the first of the file"},
}};

DataParts open_mnist(const std::string& folder, const DataOptions&) {
  DataParts parts{read_part(folder, "train"), read_part(folder, "t10k")};
  if (parts.train.height != parts.test.height || parts.train.width != parts.test.width) {
    throw TraceError(
        folder, "",
        fmt::format("training images have {} × {} pixels, and test images {} × {}",
                    parts.train.width, parts.train.height, parts.test.width, parts.test.height));
  }
  return parts;
}

}  // namespace

extern const DataKind mnist_data{
    "mnist", "mnist:FOLDER",
    "MNIST's handwritten digits (LeCun et al. 1998), or what has the form of its four files",
    mnist_options, open_mnist};

}  // namespace stageline::lab
