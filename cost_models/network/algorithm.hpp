// How a collective is carried out: an algorithm is a constant at the foot of its own .cpp, listed
// in cost_models/network/meson.build.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "cost_models/network/chips.hpp"
#include "cost_models/network/nccl.hpp"
#include "sim/base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"

namespace stageline {

/// A group of ranks as algorithms see it. Ranks are 0 to n−1 in the order of a ring, those of a
/// domain one after another. A domain is what NVLink or one machine joins.
struct GroupShape {
  std::vector<int> domains{1};  // the number of ranks of each
  Tier inside = Tier::other;    // the slowest kind of link within a domain
  Tier across = Tier::other;    // the same between domains
  Time inside_latency{};        // of the slowest route between neighbours of a domain
  Time across_latency{};
  double inside_rate = 0;  // bytes a second of the same routes as the cluster states it; 0: none
  const Chip* chip = nullptr;  // the slowest of its devices; null: one is not known
  TokenRouting routing{};      // of an all-to-all by a dispatcher

  int ranks() const;
  int count() const { return static_cast<int>(domains.size()); }  // of domains
  int largest() const;                                            // ranks of the largest domain
  bool even() const;                                              // all domains are equally large
  /// Whether NCCL's constants apply: they need the chip and the kinds of the links.
  bool known() const;
};

/// Bytes from one rank to another for each byte of progress, a byte of Collective::bytes.
struct RankTransfer {
  int from = 0;
  int to = 0;
  double share = 0;
};

/// One way to run an algorithm (a protocol of NCCL), for one size.
struct CollectivePace {
  Time setup{};                                           // before the bytes move
  double efficiency = 1;                                  // of the rate that the links allow
  double most = std::numeric_limits<double>::infinity();  // bytes of progress a second
  // The source of a measured table, which is of NCCL's own choice, where setup and rate are its;
  // else empty.
  std::string_view source{};

  bool measured() const { return !source.empty(); }
};

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool (*handles)(CollectiveKind kind, const GroupShape& shape);
  std::vector<RankTransfer> (*transfers)(CollectiveKind kind, const GroupShape& shape);
  /// At least one; the one that takes the least time is used. Throws UsageError where latencies add
  /// up to more than longest_run.
  std::vector<CollectivePace> (*paces)(CollectiveKind kind, Bytes bytes, const GroupShape& shape);
  /// By tier: the shares of the links' stated rates that it reaches where shape.known(); null:
  /// those of large collectives of NCCL.
  std::array<double, tiers> (*reached)(const GroupShape& shape) = nullptr;
};

/// In the order of meson.build. The first one of those that take the same time is used.
std::span<const Algorithm* const> algorithms();

/// `count` latencies, one after another. Throws UsageError where that is more than longest_run.
Time rounds(std::int64_t count, Time latency);

/// Each rank to the next one, and the last to the first, all with that share. Nothing for one rank.
std::vector<RankTransfer> ring_transfers(int first, int ranks, double share);

/// The group in the words of NCCL's formulas. shape.known().
NcclGroup nccl_group(const GroupShape& shape);

/// A latency of NCCL's formulas.
Time from_microseconds(double microseconds);

/// The measured lines of the algorithm on that group, with `efficiency` of the links' rate as their
/// bound, in proportion to the rate of NVLink that the cluster states; empty where there is no
/// table for it. They are of one NVLink domain.
std::vector<CollectivePace> measured_paces(std::string_view algorithm, CollectiveKind kind,
                                           const GroupShape& shape, double efficiency);

}  // namespace stageline
