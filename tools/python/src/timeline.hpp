// The spans of a run as rows that NumPy and Arrow look at.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/timeline.hpp"

namespace stageline::python {

/// A span with its place. NumPy sees this memory itself.
struct SpanRow {
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  std::int64_t microbatch = 0;
  std::uint16_t stage = 0;
  std::uint16_t device = 0;
  std::uint8_t lane = 0;
  std::uint8_t kind = 0;
  std::uint8_t part = 0;
  std::uint8_t overlapped = 0;
};
static_assert(sizeof(SpanRow) == 32);

/// All spans, device by device, lane by lane, each lane in order of start.
struct SpanTable {
  std::vector<SpanRow> rows;
  std::vector<std::string> devices;  // names
};
std::shared_ptr<const SpanTable> table_of(const Timeline& timeline);

/// A capsule named "arrow_array_stream" with one batch of the table's columns: `device`, `lane` and
/// `kind` as dictionaries of names, the others as numbers.
nanobind::capsule arrow_stream_of(const std::shared_ptr<const SpanTable>& table);

void bind_timeline(nanobind::module_& module);

}  // namespace stageline::python
