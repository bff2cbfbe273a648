// NCCL's tables and formulas, with times in µs as NCCL has them.
#include "cost_models/network/nccl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple

constexpr ByProtocol ring_base{6.6, 14.0, 8.4};
constexpr ByProtocol tree_base{6.8, 14.0, 8.4};
constexpr ByProtocol ring_nvlink{0.6, 1.9, 3.4};
constexpr ByProtocol ring_pcie{1.0, 2.5, 5.7};
constexpr ByProtocol ring_network{2.7, 4.0, 14.0};
constexpr ByProtocol tree_nvlink{0.6, 1.25, 4.0};
constexpr ByProtocol tree_pcie{1.0, 1.9, 4.0};
constexpr ByProtocol tree_network{5.0, 8.5, 14.0};
constexpr double nvls_nvlink = 25;
constexpr double nvls_network = 18;

constexpr double pat_base = 8;
constexpr double pat_network = 14;
constexpr double pat_a_rank = 2.8;

// The bus bandwidth of LL: within a node by generation, and on Intel hosts with 2 and with more.
constexpr std::array ll_most_inside{39.0e9, 87.7e9, 141e9, 282e9};
constexpr double ll_most_two_nodes = 39.0e9;
constexpr double ll_most_nodes = 20.4e9;

constexpr std::array nvls_efficiency{0.0, 0.0, 0.85, 0.74};

// From 64 B on, by powers of two.
using Correction = std::array<double, 24>;
constexpr std::array<Correction, 3> tree_correction{{
    {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5,
     .4,  .4,  .5,  .6,  .7, .8, .9, 1., 1., 1., 1., 1.},
    {1.0, 1.0, 1.0, 1.0, 1., .9, .8, .8, .8, .7, .6, .6,
     .6,  .6,  .6,  .6,  .8, .9, .9, .9, .9, 1., 1., 1.},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

constexpr int channels = 16;

const ByProtocol& ring_inside(const NcclGroup& group) {
  return group.inside == Tier::pcie ? ring_pcie : ring_nvlink;
}

const ByProtocol& tree_inside(const NcclGroup& group) {
  return group.inside == Tier::pcie ? tree_pcie : tree_nvlink;
}

// One step between nodes. NCCL takes the tree's latency where each node has one rank.
double ring_across(const NcclGroup& group, Protocol protocol) {
  const ByProtocol& hardware = group.ranks == group.nodes ? tree_network : ring_network;
  return nth(hardware, protocol) + group.network_latency * (protocol == Protocol::simple ? 2 : 1);
}

// One step within a node, which waits for the host to post messages where there are several nodes.
double ring_step(const NcclGroup& group, Protocol protocol) {
  const double hardware = nth(ring_inside(group), protocol);
  if (group.nodes == 1) return hardware;
  return std::max(hardware, group.network_overhead * (protocol == Protocol::simple ? 3 : 1));
}

int log2_of(int count) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(count))) - 1;
}

double corrected(Bytes bytes, Protocol protocol) {
  const Correction& table = nth(tree_correction, protocol);
  const double at = std::log2(std::max(1.0, static_cast<double>(bytes.count) / 64));
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= table.size()) return table.back();
  return std::lerp(table[below], table[below + 1], at - std::floor(at));
}

}  // namespace

int ring_steps(CollectiveKind kind, int ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return ranks - 1;
    case CollectiveKind::broadcast:
      return ranks;
  }
  return 0;
}

double nccl_ring_latency(CollectiveKind kind, const NcclGroup& group, Protocol protocol) {
  const double base = nth(ring_base, protocol);
  const int steps = ring_steps(kind, group.ranks);
  if (kind == CollectiveKind::broadcast) {
    const bool chunks = protocol == Protocol::simple;
    const ByProtocol& inside = chunks ? tree_inside(group) : ring_inside(group);
    const ByProtocol& across = chunks ? tree_network : ring_network;
    return base + steps * nth(group.nodes == 1 ? inside : across, protocol);
  }
  const int across = group.nodes == 1 ? 0 : ring_steps(kind, group.nodes);
  return base + (steps - across) * ring_step(group, protocol) +
         across * ring_across(group, protocol);
}

double nccl_tree_latency(const NcclGroup& group, Protocol protocol) {
  const double across =
      nth(tree_network, protocol) + group.network_latency * (protocol == Protocol::simple ? 2 : 1);
  const int inside = group.ranks / group.nodes - 1;
  return nth(tree_base, protocol) +
         2 * (inside * nth(tree_inside(group), protocol) + log2_of(group.nodes) * across);
}

double nccl_nvls_latency(const NcclGroup& group) {
  return nvls_nvlink + (group.nodes > 1 ? nvls_network + 2 * group.network_latency : 0);
}

double nccl_hierarchical_latency(CollectiveKind kind, const NcclGroup& group, Protocol protocol) {
  const int inside = ring_steps(kind, group.ranks / group.nodes);
  const int across = ring_steps(kind, group.nodes);
  return nth(ring_base, protocol) + inside * ring_step(group, protocol) +
         across * ring_across(group, protocol);
}

double nccl_pat_latency(const NcclGroup& group) {
  const double across = pat_network + 2 * group.network_latency;
  return pat_base + log2_of(group.nodes) * across / 3.5 + group.ranks * pat_a_rank;
}

double nccl_direct_latency(const NcclGroup& group) {
  const double hardware = group.nodes == 1 ? nth(ring_inside(group), Protocol::simple)
                                           : ring_across(group, Protocol::simple);
  return nth(ring_base, Protocol::simple) + hardware + (group.ranks - 1) * group.network_overhead;
}

double ring_plateau(CollectiveKind kind, Bytes bytes, const NcclGroup& group) {
  if (kind != CollectiveKind::all_reduce || group.nodes == 1) return 1;
  if (bytes.count / (std::int64_t{channels} * group.ranks) < 64) return 1;
  return group.generation == Generation::volta ? 1.9 : 1.4;
}

double nccl_ring_efficiency(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return 0.5;
    case Protocol::ll128:
      return 0.92;
    case Protocol::simple:
      return 1;
  }
  return 1;
}

double nccl_tree_efficiency(Bytes bytes, const NcclGroup& group, Protocol protocol) {
  const double correction = 0.92 * corrected(bytes, protocol);
  switch (protocol) {
    case Protocol::ll:
      return correction / 3.8;
    case Protocol::ll128:
      return correction * (group.nodes == 1 ? 7.0 / 9 : 120.0 / 128);
    case Protocol::simple:
      return correction;
  }
  return correction;
}

double nccl_nvls_efficiency(Generation generation) { return nth(nvls_efficiency, generation); }

double nccl_ll_most(const NcclGroup& group) {
  if (group.nodes == 1) return nth(ll_most_inside, group.generation);
  return group.nodes == 2 ? ll_most_two_nodes : ll_most_nodes;
}

bool nccl_uses(Protocol protocol, const NcclGroup& group) {
  return protocol != Protocol::ll128 || group.inside == Tier::nvlink;
}

}  // namespace stageline
