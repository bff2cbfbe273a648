// What the same work would take without any pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/study.hpp"

namespace stageline {

/// On the fastest device of the cluster alone: every layer's F and B for so many micro-batches, and
/// every layer's U so many times; on a device whose rate is not 1 rounded once. Its memory is not
/// looked at. Throws UsageError where that is longer than 106 days, the most that 64 bits of
/// picoseconds can say.
Time time_on_one_device(const Case& asked, std::int64_t microbatches, std::int64_t updates);

/// What devices do together, done by the fastest of them. `by_device`: as long as each takes.
Time on_fastest_device(const std::vector<Time>& by_device, const Cluster& cluster);

}  // namespace stageline
