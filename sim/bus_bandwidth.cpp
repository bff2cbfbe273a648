// The bus bandwidth of nccl-tests, both ways.
#include "sim/bus_bandwidth.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stageline {

double bus_factor(CollectiveKind kind, int ranks) {
  const double share = (ranks - 1.0) / ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * share;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return share;
    case CollectiveKind::broadcast:
      return 1;
  }
  return 1;
}

double bus_bandwidth(CollectiveKind kind, int ranks, Bytes bytes, Time time) {
  return bus_factor(kind, ranks) * static_cast<double>(bytes.count) / to_seconds(time);
}

Time time_at_bus_bandwidth(CollectiveKind kind, int ranks, Bytes bytes, double bandwidth) {
  return from_seconds(bus_factor(kind, ranks) * static_cast<double>(bytes.count) / bandwidth);
}

std::optional<double> meeting_size(const MeasuredCollective& before,
                                   const MeasuredCollective& next) {
  const auto seconds_a_byte = [](const MeasuredCollective& line) {
    if (line.bandwidth.is_unlimited()) return 0.0;
    return bus_factor(line.kind, line.ranks) / static_cast<double>(line.bandwidth.bytes_per_second);
  };
  const double slope = seconds_a_byte(before) - seconds_a_byte(next);
  const double latency = to_seconds(next.alpha - before.alpha);
  if (slope == 0 || !(latency / slope > 0)) return std::nullopt;
  return latency / slope;
}

namespace {

// The first of the single times behind a size; the number of times where there is none.
std::size_t first_above(const std::vector<MeasuredTime>& times, Bytes bytes) {
  const auto after =
      std::upper_bound(times.begin(), times.end(), bytes,
                       [](Bytes size, const MeasuredTime& one) { return size < one.bytes; });
  return static_cast<std::size_t>(after - times.begin());
}

// d log(time) / d log(size) between two times.
double steepness(const MeasuredTime& from, const MeasuredTime& to) {
  const double sizes = static_cast<double>(to.bytes.count) / static_cast<double>(from.bytes.count);
  return std::log(to_seconds(to.time) / to_seconds(from.time)) / std::log(sizes);
}

// Latency and rate by one time: what it took above the latency grows with the size.
MeasuredPace by_one(const MeasuredTime& one, Time alpha) {
  const double latency = to_seconds(std::min(alpha, one.time));
  const double moving = to_seconds(one.time) - latency;
  return {latency, moving > 0 ? static_cast<double>(one.bytes.count) / moving : 0};
}

}  // namespace

MeasuredPace measured_pace(const MeasuredCollective& measured, Bytes bytes) {
  const std::vector<MeasuredTime>& times = measured.times;
  const std::size_t above = first_above(times, bytes);
  if (above == 0) return by_one(times.front(), measured.alpha);
  const MeasuredTime& from = times[above - 1];
  if (above == times.size()) {
    if (from.bytes != bytes || above == 1) return by_one(from, measured.alpha);
  }
  const std::size_t to = std::min(above, times.size() - 1);
  const double steep = steepness(times[to - 1], times[to]);
  const auto size = static_cast<double>(bytes.count);
  const double sizes = size / static_cast<double>(from.bytes.count);
  const double seconds = to_seconds(from.time) * std::pow(sizes, steep);
  const double share = std::clamp(steep, 0.0, 1.0);
  return {seconds * (1 - share), share > 0 ? size / (share * seconds) : 0};
}

void scale_times(MeasuredCollective& measured, double rate) {
  for (MeasuredTime& one : measured.times) {
    const Time moving = std::max(Time{}, one.time - measured.alpha);
    one.time += from_seconds(to_seconds(moving) / rate) - moving;
  }
}

}  // namespace stageline
