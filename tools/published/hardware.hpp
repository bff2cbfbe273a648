// The machines of a row as a cluster of Stageline.
#pragma once

#include <string>
#include <vector>

#include "tools/published/points.hpp"

namespace stageline {

struct PointHardware {
  std::string kind;     // of device, as in model:…@kind
  std::string cluster;  // name of a bundled one with its machines ("a100x8*4"), or a cluster's JSON
  std::vector<std::string> assumptions;
  std::string why_not;  // empty: it is known
};

/// By the words of the hardware and network columns: a100, 40 GB or 80 GB, h100, h100 with 96 GB,
/// and the other kinds of the bundled machines, V100 as SXM2 boards; "4x … 100 Gb/s per node",
/// "1600 Gb/s per node", "400 Gb/s per GPU". A bundled cluster where its NICs are as fast, or where
/// no rate is printed; else the same machine with such NICs. `pace`: op_overhead and rate of its
/// devices.
PointHardware hardware_of(const Point& point, const RunPace& pace = {});

}  // namespace stageline
