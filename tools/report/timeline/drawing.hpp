// The contents of a picture: one value that the SVG, the Chrome trace and the HTML report all draw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/units.hpp"
#include "sim/program.hpp"
#include "sim/timeline.hpp"
#include "tools/report/timeline/arrows.hpp"

namespace stageline::report {

/// One simulated or measured run. Only `program` and `timeline` are required; empty fields are not
/// drawn. All times count from the start of the timeline's clock, 0.
struct Drawing {
  std::string title;
  std::string subtitle;
  std::string rates;  // a line below the subtitle: "6.442k tokens/s a GPU · MFU 39.3 %"
  std::vector<std::string> footnotes;
  Program program;
  Time step{};  // at a steady pace; 0: unknown
  Timeline timeline;
  MemoryProfile memory;                            // with curves, else no memory panel
  std::vector<std::optional<Bytes>> memory_limit;  // by device; empty: unknown
  std::vector<std::string> hosts;                  // names, in the order of memory.host
  std::vector<std::optional<Bytes>> host_limit;    // by host
  std::vector<IdleInterval> idle;
  std::vector<Time> ends;               // by device: period of its idle share; empty: the whole
  std::vector<StageVersions> versions;  // by stage
  std::vector<std::size_t> rows{};      // the devices to draw, from the top; empty: all
};

/// Several runs on one time axis, one below the other.
struct Drawings {
  std::string title;
  std::string subtitle;
  std::vector<Drawing> runs;  // the title of a run is its heading, the subtitle follows it
};

/// The panels of a picture. One without content is left out.
struct Panels {
  bool timeline = true;
  bool memory = true;
  bool weights = true;
  bool categories = false;  // memory stacked by category
};

/// What the numbers on ops count.
enum class OpNumbers : std::uint8_t {
  microbatches,           // micro-batches and stages, from 0
  microbatches_from_one,  // the same from 1
  by_direction,           // micro-batches of each direction of a schedule of two by itself
  versions,               // updates that the weights which an op reads have seen
};

/// The part of a run that a picture shows.
struct DrawingView {
  Panels panels;
  Time from{};
  std::optional<Time> to;  // empty: the end of the longest run; of several timelines alone, of the
                           // longest that takes at most twice as long as half of them do
  OpNumbers numbers = OpNumbers::microbatches;
  ArrowChoice arrows{};
};

}  // namespace stageline::report
