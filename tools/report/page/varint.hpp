// Numbers in as few bytes as they need: seven bits a byte, the lowest first, the highest bit set in
// all but the last (LEB128). web/data.js reads them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tools/report/page/page.hpp"

namespace stageline::report {

/// A column of a table, to be a blob.
class VarintColumn {
 public:
  explicit VarintColumn(std::string name) : blob_{std::move(name), BlobType::u8, {}} {}

  void put(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) blob_.bytes += static_cast<char>(value | 0x80U);
    blob_.bytes += static_cast<char>(value);
  }
  /// Also numbers below 0: 0, -1, 1, -2, … are put as 0, 1, 2, 3, …
  void put_signed(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    put(value < 0 ? ~(bits << 1U) : bits << 1U);
  }
  /// The difference to the value put by this before; at first to 0.
  void put_delta(std::int64_t value) {
    put_signed(value - last_);
    last_ = value;
  }

  PageBlob take() { return std::move(blob_); }

 private:
  PageBlob blob_;
  std::int64_t last_ = 0;
};

}  // namespace stageline::report
