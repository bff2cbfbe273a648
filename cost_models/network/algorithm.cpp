// What several algorithms of collectives share.
#include "cost_models/network/algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/errors.hpp"
#include "sim/bus_bandwidth.hpp"

namespace stageline {

int GroupShape::ranks() const { return std::accumulate(domains.begin(), domains.end(), 0); }

int GroupShape::largest() const { return *std::max_element(domains.begin(), domains.end()); }

bool GroupShape::even() const {
  return std::all_of(domains.begin(), domains.end(),
                     [&](int ranks) { return ranks == domains.front(); });
}

bool GroupShape::known() const {
  if (chip == nullptr) return false;
  return (largest() == 1 || inside == Tier::nvlink || inside == Tier::pcie) &&
         (count() == 1 || across == Tier::network);
}

Time rounds(std::int64_t count, Time latency) {
  __extension__ using Wide = __int128;
  const Wide sum = Wide{count} * latency.count();
  if (sum > longest_run.count()) {
    throw UsageError(
        fmt::format("{} rounds of a collective, each {} late, are more than can be added up; check "
                    "the units of the links' latencies",
                    count, print(latency)));
  }
  return Time{static_cast<std::int64_t>(sum)};
}

std::vector<RankTransfer> ring_transfers(int first, int ranks, double share) {
  std::vector<RankTransfer> transfers;
  if (ranks < 2) return transfers;
  for (int i = 0; i < ranks; ++i) {
    transfers.push_back({first + i, first + (i + 1) % ranks, share});
  }
  return transfers;
}

NcclGroup nccl_group(const GroupShape& shape) {
  NcclGroup group;
  group.ranks = shape.ranks();
  group.nodes = shape.count();
  group.inside = shape.largest() == 1 ? Tier::nvlink : shape.inside;
  group.network_latency = static_cast<double>(shape.across_latency.count()) / 1e6;
  group.generation = shape.chip->generation;
  return group;
}

Time from_microseconds(double microseconds) { return from_seconds(microseconds * 1e-6); }

std::vector<CollectivePace> measured_paces(std::string_view algorithm, CollectiveKind kind,
                                           const GroupShape& shape, double efficiency) {
  std::vector<CollectivePace> paces;
  if (shape.chip == nullptr || shape.count() > 1 || shape.inside != Tier::nvlink) return paces;
  const int ranks = shape.ranks();
  const bool stated = shape.inside_rate > 0 && shape.chip->nvlink > 0;
  const double share = stated ? shape.inside_rate / shape.chip->nvlink : 1;
  for (const MeasuredLine& line : measured_lines()) {
    if (line.kind != shape.chip->kind || line.algorithm != algorithm || line.collective != kind ||
        line.ranks != ranks) {
      continue;
    }
    paces.push_back({from_seconds(line.alpha), efficiency,
                     share * line.bandwidth / bus_factor(kind, ranks), line.source});
  }
  return paces;
}

}  // namespace stageline
