// The times of one profile's events, its head and its steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/chrome/trace_events.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {

inline constexpr std::string_view step_prefix = "ProfilerStep#";
inline constexpr std::string_view update_prefix = "Optimizer.step#";

/// Nanoseconds. The base of the times is in the head, which is complete only after the events: so
/// start() is as written, and counted_from() what to add to it afterwards.
class ProfileTimes {
 public:
  explicit ProfileTimes(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void refuse(const std::string& where, const std::string& message) const;

  /// `ts` and `dur`. Throw TraceError where they are missing or out of range.
  std::int64_t start(const TraceEvent& event) const;
  std::int64_t duration(const TraceEvent& event) const;

  /// Fills in host, world size, accelerator and rank. Throws TraceError.
  void read_head(const TraceHead& head, KinetoRank& rank);

  /// The base, or 0 for a time that counts from 1970 in spite of it: then it is not smaller.
  std::int64_t counted_from(std::int64_t start) const { return start >= base_ / 2 ? 0 : base_; }

  /// The number of "ProfilerStep#N". Throws TraceError unless it is larger than those before.
  std::int64_t step_number(const std::string& name, std::size_t event,
                           const std::vector<std::int64_t>& before) const;

 private:
  std::int64_t nanoseconds(const TraceEvent& event, const char* key,
                           const std::string& digits) const;

  std::string file_;
  std::int64_t base_ = 0;
};

}  // namespace stageline
