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

/// What has an Arrow stream as a DataFrame (pandas 2.2, or pyarrow).
nanobind::object frame_of(const nanobind::handle& self);

void bind_timeline(nanobind::module_& module);

}  // namespace stageline::python
