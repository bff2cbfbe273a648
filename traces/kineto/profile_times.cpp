// Reads the times of a profile's events, its head and the numbers of its steps.
#include "traces/kineto/profile_times.hpp"

#include <fmt/core.h>

#include <optional>

#include "sim/base/errors.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

void ProfileTimes::refuse(const std::string& where, const std::string& message) const {
  throw TraceError(file_, where, message);
}

std::int64_t ProfileTimes::start(const TraceEvent& event) const {
  return nanoseconds(event, "ts", event.start);
}

std::int64_t ProfileTimes::duration(const TraceEvent& event) const {
  return nanoseconds(event, "dur", event.duration);
}

std::int64_t ProfileTimes::nanoseconds(const TraceEvent& event, const char* key,
                                       const std::string& digits) const {
  if (digits.empty()) {
    refuse(fmt::format("/traceEvents/{}", event.index),
           fmt::format("a range needs \"{}\", in microseconds", key));
  }
  const std::optional<ScaledDecimal> number = scale_decimal(digits, 3);
  constexpr std::int64_t most = most_bytes / 2;  // the year 2043
  if (!number || number->value < 0 || number->value > most) {
    refuse(event_pointer(event, key),
           fmt::format("this must be from 0 to {} µs (it is {})", most / 1000, digits));
  }
  return number->value;
}

void ProfileTimes::read_head(const TraceHead& head, KinetoRank& rank) {
  rank.host = head.host;
  rank.ranks = head.world_size;
  rank.accelerator = head.device;
  if (!head.rank.empty()) {
    const std::optional<std::int64_t> number = parse_count(head.rank);
    if (!number || *number >= 1 << 24) {
      refuse("/distributedInfo/rank", fmt::format("{} is not a rank", in_quotes(head.rank)));
    }
    rank.rank = static_cast<int>(*number);
  }
  if (head.base_ns.empty()) return;
  const std::optional<ScaledDecimal> number = scale_decimal(head.base_ns, 0);
  if (!number || number->value < 0 || number->value > most_bytes / 2) {
    refuse("/baseTimeNanoseconds", fmt::format("{} is not a time", in_quotes(head.base_ns)));
  }
  base_ = number->value;
}

std::int64_t ProfileTimes::step_number(const std::string& name, std::size_t event,
                                       const std::vector<std::int64_t>& before) const {
  const std::optional<std::int64_t> number =
      parse_count(std::string_view(name).substr(step_prefix.size()));
  if (!number || (!before.empty() && *number <= before.back())) {
    refuse(fmt::format("/traceEvents/{}/name", event),
           fmt::format("{} must have a number, larger than that of the step before it",
                       in_quotes(name)));
  }
  return *number;
}

}  // namespace stageline
