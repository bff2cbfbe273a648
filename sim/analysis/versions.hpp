// Which weights each op reads: versions, staleness, and how many versions a stage must hold.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// Change in the number of versions that one device holds of one stage.
struct VersionEvent {
  Time at{};
  int device = 0;
  int change = 0;  // +1: an old version starts to be kept beside the newest; -1: it is dropped
};

/// How many micro-batches were so stale.
struct StalenessCount {
  int updates = 0;
  std::int64_t microbatches = 0;

  friend bool operator==(const StalenessCount&, const StalenessCount&) = default;
};

struct StageVersions {
  int held_peak = 1;          // most versions held at once on one device, the newest included
  double staleness_min = 0;   // updates between a micro-batch's forward and its own update
  double staleness_mean = 0;  //
  double staleness_max = 0;   //
  std::vector<StalenessCount> staleness;  // by updates, rising; no empty counts
  bool consistent = true;       // forward and backward of every micro-batch read the same version
  std::int64_t read_other = 0;  // micro-batches whose backward read another one than their forward
  int read_other_by = 0;        // the most updates between the two
  std::vector<VersionEvent> events;  // in order of time
};

/// By stage, under the program's weight rule. The version of a stage is the number of its updates
/// that ended before (where neither update nor reader takes time, by what waits for what); on a
/// replica, of that replica's updates.
/// Staleness of micro-batch m at a stage: updates applied there between the version that its
/// forward reads and the update that its gradient goes into, that is 0 for plain training. Steady
/// value: the maximum; the mean and the histogram are over all micro-batches, warm-up included.
/// Linear in the spans, but for sorting the events.
std::vector<StageVersions> versions_of(const Program& program, const Timeline& timeline);

/// One pass over a micro-batch, and the weights it goes by.
struct VersionRead {
  Op op;  // F, R, I, W or B
  int device = 0;
  std::uint32_t version = 0;  // updates that its stage's weights have seen
  friend bool operator==(const VersionRead&, const VersionRead&) = default;
};

/// Every pass of the program, by stage and device, in order of time. Under a correction that
/// rebuilds old weights, a pass backwards reads the newest, which they are rebuilt from.
std::vector<VersionRead> versions_read(const Program& program, const Timeline& timeline);

}  // namespace stageline
