// Small files in the forms of MNIST and CIFAR-10.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace stageline::datasets {

inline std::string big_endian(std::uint32_t word) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(word >> shift & 0xFFU);
  return bytes;
}

/// Pixel p of image i is 7i + p + `first`, as a byte.
inline std::string idx_images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                              std::uint32_t first = 0) {
  std::string bytes =
      big_endian(0x803) + big_endian(count) + big_endian(rows) + big_endian(columns);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t p = 0; p < rows * columns; ++p) {
      bytes += static_cast<char>((7 * i + p + first) & 0xFFU);
    }
  }
  return bytes;
}

inline std::string idx_labels(const std::string& labels) {
  return big_endian(0x801) + big_endian(static_cast<std::uint32_t>(labels.size())) + labels;
}

/// A record of CIFAR-10 whose channels are all `red`, `green` and `blue`.
inline std::string cifar_record(char label, char red, char green, char blue) {
  return label + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

/// A folder of its own, empty, and gone at the end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("stageline-test-datasets-" + name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
  }
  void remove(const std::string& name) const { std::filesystem::remove(path_ / name); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace stageline::datasets
