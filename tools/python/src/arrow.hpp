// Columns by Arrow's C data interface.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stageline::python {

/// Texts as Arrow holds them: their bytes in a row, and where each begins.
struct ArrowWords {
  std::vector<std::int32_t> begins{0};
  std::string bytes;

  /// Throws UsageError beyond 2 GiB.
  void add(std::string_view word);
  std::int64_t size() const { return static_cast<std::int64_t>(begins.size()) - 1; }
};

struct ArrowColumn {
  enum class Form : std::uint8_t { int32, int64, real, text, coded };

  std::string name;
  Form form = Form::int64;
  std::vector<std::int32_t> narrow{};  // of int32; of coded: the numbers of its words
  std::vector<std::int64_t> wide{};
  std::vector<double> reals{};
  ArrowWords words{};
  std::vector<std::uint8_t> there{};  // a bit for each row, the lowest first; empty: all are there
  std::int64_t nulls = 0;
};

/// Rows that are handed out together.
struct ArrowBatch {
  std::int64_t rows = 0;
  std::vector<ArrowColumn> columns;
};

/// A capsule named "arrow_array_stream". `columns` has the names and forms of all batches; `next`
/// makes one after the other, and null behind the last. What it throws, the reader gets as text.
/// It is called without the interpreter's lock being needed.
nanobind::capsule arrow_stream_of(std::shared_ptr<const ArrowBatch> columns,
                                  std::function<std::shared_ptr<const ArrowBatch>()> next);

}  // namespace stageline::python
