// The cluster that the user names or describes by flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/network/allocation.hpp"
#include "sim/cluster.hpp"
#include "sim/degrees.hpp"

namespace stageline {

/// --cluster, --link, --memory, --reserve, --host-link, --host-memory, --pair-overlap.
struct ClusterRequest {
  std::string cluster;                   // file, name of a bundled one, either with "*4" for four
                                         // times its machines, or JSON; empty: see below
  std::optional<LinkSpec> link;          // with a link or a memory and no cluster: equal devices
  std::optional<Bytes> memory;           // of each device, instead of its own
  std::string priced_for;                // device kind of the trace; empty: none
  std::optional<LinkSpec> host_link{};   // of each of the equal devices
  std::optional<Bytes> host_memory{};    // of the host that they share
  std::optional<double> pair_overlap{};  // of any cluster, instead of its own
  std::optional<Bytes> reserve{};        // of the memory of each device, instead of its own
  bool groups = false;                   // ranks of several devices, see ClusterUse
  bool overlap = false;                  // compute is slowed beside communication, too
  std::string placement{};               // on racks, as parse_placement() takes it; empty: segment
};

/// What --devices may pick from. Without --cluster, --link and --memory: the bundled cluster of the
/// device that the trace is priced for, else equal devices with free communication. `note` names
/// what was assumed, or is empty.
struct ClusterChoice {
  std::optional<Cluster> fixed;  // take the first devices of this one
  std::optional<LinkSpec> link;  // or make equal ones
  std::optional<Bytes> memory;   // of each of these
  std::optional<LinkSpec> host_link;
  std::optional<Bytes> host_memory;
  std::optional<double> pair_overlap;
  std::string note;
  std::optional<Bytes> reserve{};  // of the equal devices
  std::string machine;             // name of the fixed one without "*4", where it has a name
  AllocationRequest allocation{};  // of the fixed one's devices
};

/// Throws UsageError or TraceError.
ClusterChoice choose_cluster(const ClusterRequest& request);

/// The devices of the fixed cluster that a job of so many gets (allocated()), or that many equal
/// ones. Throws UsageError where it has fewer, and names the multiple of its machines that would
/// have as many.
Cluster cluster_of(const ClusterChoice& choice, int devices, const Degrees& degrees = {});

/// The placement of such a job that a request leaves open beside the one it has, and that gives it
/// other devices; empty: there is none.
std::string other_placement(const ClusterRequest& request, const Cluster& job);

/// "segment", "fill", or a file with the names of devices, apart by white space. Empty: segment.
/// Throws UsageError.
AllocationRequest parse_placement(const std::string& text);

/// "12GB/s,5us" or "12GB/s". Throws UsageError, which begins with `what`.
LinkSpec parse_link(const std::string& text, const std::string& what = "--link");

/// What is assumed of links over TCP, and of PCIe on which devices do not reach each other. Whole
/// sentences without a full stop; none where no link is so.
std::vector<std::string> transport_notes(const Cluster& cluster);

/// Kinds of all bundled clusters, each once.
std::vector<DeviceKind> known_kinds();

}  // namespace stageline
