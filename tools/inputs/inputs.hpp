// What the user names on the command line, turned into values: a trace, a cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// TRACE is a file (native JSON or a PipeDream graph.txt, told apart by what is in it),
/// "model:NAME@ DEVICE,…", "uniform:…", the name of a bundled trace, or the text of a native trace
/// itself, from its brace on. `batch` is
/// --microbatch-size: 0 keeps the trace's own. Throws UsageError or TraceError.
struct TraceRequest {
  std::string text;
  int batch = 0;
  int profile_batch = 0;               // of a PipeDream profile, which does not say its own
  std::vector<DeviceKind> more_kinds;  // beside those of the bundled clusters
};
Model open_trace(const TraceRequest& request);

/// All batch sizes that a file holds. "model:" and "uniform:" have one.
std::vector<Model> open_trace_sizes(const TraceRequest& request);

/// The device kind that a "model:NAME@DEVICE" trace is priced for, or an empty text.
std::string priced_device(const std::string& trace);

/// --cluster, --link, --memory, --host-link, --host-memory, --pair-overlap.
struct ClusterRequest {
  std::string cluster;                   // file, name of a bundled one or JSON; empty: see below
  std::optional<LinkSpec> link;          // with a link or a memory: equal devices
  std::optional<Bytes> memory;           //
  std::string priced_for;                // device kind of the trace; empty: none
  std::optional<LinkSpec> host_link{};   // of each of the equal devices
  std::optional<Bytes> host_memory{};    //
  std::optional<double> pair_overlap{};  // of any cluster, instead of its own
};

/// What --devices may pick from. Without --cluster, --link and --memory: the bundled cluster of the
/// device that the trace is priced for, else equal devices with free communication. `note` says
/// what was assumed, or is empty.
struct ClusterChoice {
  std::optional<Cluster> fixed;  // take the first devices of this one
  std::optional<LinkSpec> link;  // or make equal ones
  std::optional<Bytes> memory;
  std::optional<LinkSpec> host_link;
  std::optional<Bytes> host_memory;
  std::optional<double> pair_overlap;
  std::string note;
};
ClusterChoice choose_cluster(const ClusterRequest& request);
Cluster cluster_of(const ClusterChoice& choice, int devices);

/// "12GB/s,5us" or "12GB/s". Throws UsageError.
LinkSpec parse_link(const std::string& text);

/// "stash". Throws UsageError, which begins with `what`: "--weights is one of flush, stash, …".
WeightRule parse_weight_rule(const std::string& text, const std::string& what);

/// Kinds of all bundled clusters, each once.
std::vector<DeviceKind> known_kinds();

}  // namespace stageline
