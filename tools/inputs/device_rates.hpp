// Rates of devices that the cluster does not state: of kinds that the trace is not priced for, and
// of devices that are slower in a what-if.
#pragma once

#include <string>
#include <vector>

#include "cost_models/perturbation/perturbation.hpp"
#include "sim/cluster.hpp"

namespace stageline {

/// --slow: the device or machine (host), or with a '*' behind it all whose names begin so, and how
/// many times as long compute takes there; or links, as names_links() takes them, and how many
/// times as long a byte takes over them. Below 1 it is faster.
struct Slowdown {
  std::string name;
  double factor = 1;

  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

/// "m3:1.2,gpu0:1.1". Throws UsageError, which begins with `what`, unless each item is a name and a
/// factor from 0.001 to 1000, without a probability.
std::vector<Slowdown> parse_slow(const std::string& text, const std::string& what);

/// --slow with and without probabilities, as scenarios take it: "gpu2:1.2,gpu3:1.5@0.1".
struct UncertainSlow {
  std::string always;           // the items without one, as parse_slow() takes them
  std::vector<Slow> sometimes;  // those with one
};
/// Throws UsageError as parse_slow_items() does.
UncertainSlow split_slow(const std::string& text, const std::string& what);

/// Throws UsageError, with the nearest name, where an item names no device or machine of the
/// cluster.
void check_slow(const Cluster& cluster, const std::vector<Slowdown>& slow);

/// The cluster with both rates of these devices divided by the factors, and their op_overhead
/// multiplied; or with the bandwidth of these links divided. Items that name nothing in the cluster
/// do nothing, as in a sweep of device counts.
Cluster slowed(Cluster cluster, const std::vector<Slowdown>& slow);

/// A trace that is priced for one kind of device ("model:gpt@h100,dtype=fp16"), on a cluster with
/// devices of that kind and of others: the others' rates follow from the data sheets, `rate` from
/// the peaks for the trace's data type, `memory_rate` from the bandwidths of the memories. Devices
/// with a rate or memory rate of their own keep it (a rate of 1 counts as left out), as do all
/// where the cluster does not mix kinds, or not that one, and where the trace is measured.
struct KindRates {
  Cluster cluster;
  std::vector<std::string> notes;  // one a kind: its rates, or what is missing
};
KindRates with_rates_of_kinds(Cluster cluster, const std::string& trace);

/// Where the times of a trace are those of another known kind than all the cluster's devices:
/// that the devices of a kind without a rate of their own count as fast as it. Else empty.
/// `device`: as the trace's provenance names it, which is a kind's title where it is priced.
std::string other_kind_note(const Cluster& cluster, const std::string& device);

}  // namespace stageline
