// The routes between neighbouring stages, and the times that bytes take on them, for partitioners
// that weigh links of unequal bandwidth.
#pragma once

#include <cstdint>
#include <vector>

#include "schedulers/partition/partitioner.hpp"
#include "sim/routes.hpp"

namespace stageline {

/// Whether one device is like another to all the others: every device has the same links, to the
/// same hosts and switches. Then all routes between devices are alike.
bool links_are_alike(const Cluster& cluster);

/// What an activation one way and a gradient the other way get at the same time between two
/// devices: the narrower of the two directions, and half of it where they share a half-duplex link.
/// Unlimited from a device to itself.
Bandwidth duplex_bandwidth(Routes& routes, int one, int other);

/// The boundaries in front of the stages of a cut, where they weigh; else all times are 0.
class Boundaries {
 public:
  Boundaries() = default;
  /// `into` by stage, from the one before it; `crossing` by layer as crossing_bytes() has it.
  Boundaries(const std::vector<Bandwidth>& into, const std::vector<Bytes>& crossing);

  /// Picoseconds that one way takes into `stage`, if it begins with layer `begin`.
  std::int64_t time(std::size_t stage, std::size_t begin) const {
    return into_.empty() ? 0 : times_[kind_of_[stage]][begin];
  }
  /// Whether any takes time.
  bool weigh() const { return !into_.empty(); }
  /// The longest there is.
  std::int64_t longest() const;
  /// Clears the layers at which `stage` may not begin, because its boundary takes longer.
  void forbid(std::size_t stage, std::int64_t limit, std::vector<char>& begins) const;
  /// The bytes themselves; where boundaries weigh, the picoseconds that they take into `stage`.
  std::int64_t weight(std::size_t stage, std::int64_t bytes) const;

 private:
  std::vector<Bandwidth> into_;                   // by stage; empty: boundaries do not weigh
  std::vector<std::size_t> kind_of_;              // by stage
  std::vector<std::vector<std::int64_t>> times_;  // by kind of bandwidth and layer, ps
};

/// Those of the request's stages: each of the narrowest bandwidth between the devices on its two
/// sides, times the smaller number of these, which take turns; unlimited where a device is on both.
/// They weigh only where these routes are not all of one bandwidth. Throws UsageError where no link
/// leads from one stage to the next.
Boundaries boundaries_of(const PartitionRequest& request);

}  // namespace stageline
