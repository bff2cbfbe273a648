// What a rank does in a stretch of time, beside what its ops are called: kernels, collectives, the
// calls of its CPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "sim/analysis/measured_idle.hpp"
#include "traces/timelines.hpp"

namespace stageline {

enum class Activity : std::uint8_t {
  work,             // kernels; of work on the CPU: operators
  collectives,      // alone: no kernel runs beside them
  data_loading,     // the loader's next batch
  allocation,       // cudaMalloc, cudaFree: the allocator asks the driver
  synchronization,  // the CPU waits for the device, and what it launches comes late
  nothing,          // none of these: the CPU has launched nothing
};
inline constexpr std::size_t activity_kinds = 6;
using ActivityTimes = std::array<Time, activity_kinds>;

/// What one rank did and when, by the clock of the run's timeline.
class RankActivity {
 public:
  /// `on_device`: work is that of kernels; else of operators on the CPU, which the loader runs,
  /// too.
  explicit RankActivity(bool on_device = false) : on_device_(on_device) {}

  void add(Activity activity, TimeStretch when);
  /// Bytes of a message that the rank sends.
  void add_message(std::int64_t bytes) { sent_.insert(bytes); }
  /// Sorts what was added; within() may be called from then on.
  void settle();

  /// The times of a stretch by what the rank did, which add up to it. Of what is done at once the
  /// first counts: work, collectives, and so on; on the CPU the loader before work. Where the CPU
  /// waits for the device until nothing is left to run, all until the next work is synchronization.
  ActivityTimes within(TimeStretch when) const;

  /// Bytes of the messages that it sends, where all have the same; 0: unknown.
  std::int64_t bytes_sent() const { return sent_.size() == 1 ? *sent_.begin() : 0; }

 private:
  bool on_device_;
  std::array<std::vector<TimeStretch>, activity_kinds> when_;  // settled: ascending, apart
  std::set<std::int64_t> sent_;
};

/// By device of the run, which was read of these profiles. Throws TraceError as read_kineto() does.
std::vector<RankActivity> activities_of(const std::vector<NamedText>& profiles,
                                        const KinetoRun& run);

}  // namespace stageline
