// Which version of the weights each op reads: staleness, and how many versions a stage must hold.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

/// A change in the number of versions of one stage that a device holds.
struct VersionEvent {
  Time at{};
  int device = 0;
  int change = 0;  // +1: from now on the next version stands, or is made, beside an old one that is
                   // still read; -1: that is freed
};

/// How many micro-batches have this staleness.
struct StalenessCount {
  int updates = 0;
  std::int64_t microbatches = 0;

  friend bool operator==(const StalenessCount&, const StalenessCount&) = default;
};

struct StageVersions {
  int held_peak = 1;         // the most versions held at once on one device, the newest included
  double staleness_min = 0;  // staleness in updates, over all micro-batches
  double staleness_mean = 0;
  double staleness_max = 0;
  std::vector<StalenessCount> staleness;  // by updates, ascending; no empty counts
  bool consistent = true;       // forward and backward of every micro-batch read the same version
  std::int64_t read_other = 0;  // micro-batches with another version in backward than in forward
  int read_other_by = 0;        // the most updates between the two versions
  std::vector<VersionEvent> events;  // in order of time
  // The same of copies in memory, by any weight rule. A version that comes by a message stands in
  // room of its own until the next op of the stage takes it over; one that a SEND reads is kept
  // until that ends; and where backwards run on another device than the forward, an old one until a
  // backward reads a newer one.
  std::vector<VersionEvent> copies;
};

/// By stage, under the program's weight rule. The version that an op reads is the number of updates
/// of its stage that ended before it starts (if neither update nor reader takes time, the
/// dependencies decide); on a replica, of that replica's updates.
/// Staleness of micro-batch m at a stage: the updates applied there between the version that its
/// forward reads and the update that its gradient goes into, 0 for plain training. The steady value
/// is the maximum; mean and histogram are over all micro-batches, warm-up included.
/// Linear in the spans, except for sorting the events.
std::vector<StageVersions> versions_of(const Program& program, const Timeline& timeline);

/// One pass over a micro-batch, and the version of the weights that it reads.
struct VersionRead {
  Op op;  // F, R, I, W or B
  int device = 0;
  std::uint32_t version = 0;  // updates that its stage's weights have seen
  friend bool operator==(const VersionRead&, const VersionRead&) = default;
};

/// Every pass of the program, by stage and device, in order of time. With a correction that
/// rebuilds old weights, a backward reads the newest version, from which they are rebuilt.
std::vector<VersionRead> versions_read(const Program& program, const Timeline& timeline);

}  // namespace stageline
