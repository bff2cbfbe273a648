// NCCL's own model of its latencies and bandwidths.
#pragma once

#include <array>
#include <cstdint>

#include "cost_models/network/chips.hpp"
#include "sim/base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"

namespace stageline {

/// How NCCL moves bytes: in words with a flag, in lines of 128 bytes with a flag, or in chunks.
enum class Protocol : std::uint8_t { ll, ll128, simple };
inline constexpr std::array all_protocols{Protocol::ll, Protocol::ll128, Protocol::simple};

/// What NCCL's formulas need of a group. Source of the formulas and constants: NVIDIA/nccl,
/// src/graph/tuning.cc and src/tuning/ (2.27 to 2.29).
struct NcclGroup {
  int ranks = 1;
  int nodes = 1;               // NVLink domains, as NCCL counts where NVLink joins several machines
  Tier inside = Tier::nvlink;  // nvlink or pcie
  double network_latency = 0;  // of the route between two nodes, µs; counted twice by Simple
  double network_overhead = 1;  // µs for the host to post a message: 1 on Intel hosts, 2 on AMD
  Generation generation = Generation::ampere;
};

/// Steps of a ring: 2(n−1) of an all-reduce, n−1 of a reduce-scatter or all-gather, n of a
/// broadcast.
int ring_steps(CollectiveKind kind, int ranks);

/// Latencies in µs. Without the plateau of rings (ring_plateau).
double nccl_ring_latency(CollectiveKind kind, const NcclGroup& group, Protocol protocol);
double nccl_tree_latency(const NcclGroup& group, Protocol protocol);  // of an all-reduce
double nccl_nvls_latency(const NcclGroup& group);
/// Reduce-scatter within nodes, a ring between them, all-gather, by the same hardware latencies.
double nccl_hierarchical_latency(CollectiveKind kind, const NcclGroup& group, Protocol protocol);
/// PAT: a reduce-scatter or all-gather with one rank a node; by Simple, its only protocol.
double nccl_pat_latency(const NcclGroup& group);
/// Messages to all others, posted one after another: the ring's base and hardware latency once, and
/// the network overhead for each message. No formula of NCCL's, which has none for all-to-all.
double nccl_direct_latency(const NcclGroup& group);

/// By how much the latency of a ring's Simple protocol is longer: 1.4 (Volta: 1.9) for an
/// all-reduce between nodes of at least 64 bytes a rank and channel (16 channels are assumed).
double ring_plateau(CollectiveKind kind, Bytes bytes, const NcclGroup& group);

/// The share of the bus bandwidth that a protocol reaches.
double nccl_ring_efficiency(Protocol protocol);
/// The share of half the bandwidth that a tree reaches, with the correction for its size between 64
/// B and 512 MiB. NCCL has the correction by powers of two. Here it is a straight line between them
/// (over the logarithm of the size), so that no size takes less time than a smaller one.
double nccl_tree_efficiency(Bytes bytes, const NcclGroup& group, Protocol protocol);
/// The share of the port's bandwidth that in-switch reduction reaches; 0: the generation has none.
double nccl_nvls_efficiency(Generation generation);

/// The share of the bus bandwidth that PAT reaches.
inline constexpr double nccl_pat_efficiency = 0.75;

/// The bus bandwidth that LL does not exceed, bytes a second.
double nccl_ll_most(const NcclGroup& group);

/// Whether NCCL uses the protocol by default: LL128 needs NVLink within nodes.
bool nccl_uses(Protocol protocol, const NcclGroup& group);

}  // namespace stageline
