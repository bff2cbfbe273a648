// What the time of a collective is taken from: an entry of the cluster file, a table, a model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "sim/bus_bandwidth.hpp"
#include "sim/cluster.hpp"

namespace stageline {

/// What the time of a collective is taken from, in the order in which they go before each other.
enum class PricedBy : std::uint8_t {
  times,       // of the cluster file, at sizes between the least and the most that were measured
  beyond,      // the same times, at a size outside of them
  fit,         // α and bandwidth of the cluster file
  table,       // built-in, measured on such devices
  dispatcher,  // rates that were measured of it
  nccl,        // NCCL's latencies, protocols and the share of the links' rate that it reaches
  links,       // as the cluster states them
};
/// "beyond_times", as in JSON.
std::string_view name(PricedBy by);

/// The entry that a time was taken from.
struct PricingEntry {
  PricedBy by = PricedBy::links;
  int number = -1;       // in Cluster::collectives; -1: the cluster has none of it
  std::string source{};  // of that entry, or of the table; may be empty

  friend bool operator==(const PricingEntry&, const PricingEntry&) = default;
  /// In that order.
  friend bool operator<(const PricingEntry& a, const PricingEntry& b) {
    return std::tie(a.by, a.number, a.source) < std::tie(b.by, b.number, b.source);
  }
};

/// "times of collectives[0] in the cluster file", "NCCL's model".
std::string print(const PricingEntry& entry);

/// The entry for that size among those of the cluster which are of the kind, ranks and machines of
/// `first`, the first one of them: its single times, else the line that holds for the size.
PricingEntry measured_entry(const Cluster& cluster, const MeasuredCollective& first, Bytes bytes);

/// What that entry of the cluster says of the size. entry.number >= 0.
MeasuredPace measured_pace(const Cluster& cluster, const PricingEntry& entry, Bytes bytes);

}  // namespace stageline
