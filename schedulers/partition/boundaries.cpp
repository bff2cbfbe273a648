#include "schedulers/partition/boundaries.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "schedulers/partition/cuts.hpp"
#include "schedulers/partition/pipedream.hpp"
#include "sim/base/index.hpp"
#include "sim/checked.hpp"

namespace stageline {
namespace {

// As transfer_time, at most a share of what picoseconds hold, so that those of all stages add up.
std::int64_t time_of_bytes(std::int64_t bytes, Bandwidth bandwidth, std::size_t stages) {
  if (bandwidth.is_unlimited()) return 0;
  __extension__ using Wide = __int128;
  const Wide rate = std::max<std::int64_t>(bandwidth.bytes_per_second, 1);
  const Wide time = (static_cast<Wide>(bytes) * 1'000'000'000'000 + rate / 2) / rate;
  const auto most =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(stages + 1);
  return static_cast<std::int64_t>(std::min<Wide>(time, most));
}

bool have_common(const std::vector<int>& one, const std::vector<int>& other) {
  return std::any_of(one.begin(), one.end(), [&](int number) {
    return std::find(other.begin(), other.end(), number) != other.end();
  });
}

}  // namespace

bool links_are_alike(const Cluster& cluster) {
  using Wire = std::tuple<int, bool, Bandwidth, Time, Time, Duplex>;  // hub first
  const int devices = static_cast<int>(cluster.devices.size());
  std::vector<std::vector<Wire>> wires(cluster.devices.size());
  for (const Link& link : cluster.links) {
    const bool from_device = link.from < devices;
    const bool to_device = link.to < devices;
    if (from_device && to_device) return devices < 3;
    if (!from_device && !to_device) continue;
    const int device = from_device ? link.from : link.to;
    nth(wires, device)
        .emplace_back(from_device ? link.to : link.from, from_device, link.bandwidth, link.latency,
                      link.back(), link.duplex);
  }
  for (std::vector<Wire>& own : wires) std::sort(own.begin(), own.end());
  return std::all_of(wires.begin(), wires.end(),
                     [&](const std::vector<Wire>& own) { return own == wires.front(); });
}

Bandwidth duplex_bandwidth(Routes& routes, int one, int other) {
  if (one == other) return Bandwidth::unlimited();
  const Route& there = routes.between(one, other);
  const Route& back = routes.between(other, one);
  Bandwidth narrower = std::min(there.bandwidth, back.bandwidth);
  if (!narrower.is_unlimited() && have_common(there.resources, back.resources)) {
    narrower.bytes_per_second = std::max<std::int64_t>(narrower.bytes_per_second / 2, 1);
  }
  return narrower;
}

Boundaries::Boundaries(const std::vector<Bandwidth>& into, const std::vector<Bytes>& crossing)
    : into_(into) {
  std::vector<Bandwidth> kinds;
  for (const Bandwidth bandwidth : into) {
    const auto known = std::find(kinds.begin(), kinds.end(), bandwidth);
    kind_of_.push_back(as_size(known - kinds.begin()));
    if (known != kinds.end()) continue;
    kinds.push_back(bandwidth);
    times_.push_back({0});
    for (const Bytes bytes : crossing) {
      times_.back().push_back(time_of_bytes(bytes.count, bandwidth, into.size()));
    }
  }
}

std::int64_t Boundaries::longest() const {
  std::int64_t most = 0;
  for (const std::vector<std::int64_t>& times : times_) {
    most = std::max(most, *std::max_element(times.begin(), times.end()));
  }
  return most;
}

void Boundaries::forbid(std::size_t stage, std::int64_t limit, std::vector<char>& begins) const {
  if (into_.empty()) return;
  for (std::size_t begin = 0; begin < begins.size(); ++begin) {
    if (time(stage, begin) > limit) begins[begin] = 0;
  }
}

std::int64_t Boundaries::weight(std::size_t stage, std::int64_t bytes) const {
  return into_.empty() ? bytes : time_of_bytes(bytes, into_[stage], into_.size());
}

Boundaries boundaries_of(const PartitionRequest& request) {
  if (request.cluster.links.empty() || links_are_alike(request.cluster)) return {};
  Routes routes(request.cluster);
  std::vector<Bandwidth> into{Bandwidth::unlimited()};
  std::optional<Bandwidth> usual;  // of the boundaries so far
  bool weigh = false;
  std::vector<int> before = devices_of_stage(request, 0);
  for (int stage = 1; stage < request.stages; ++stage) {
    const std::vector<int> own = devices_of_stage(request, stage);
    into.push_back(Bandwidth::unlimited());
    if (!have_common(before, own)) {
      Bandwidth narrowest = Bandwidth::unlimited();
      for (const int from : before) {
        for (const int to : own) {
          narrowest = std::min(narrowest, duplex_bandwidth(routes, from, to));
        }
      }
      weigh = weigh || (usual && *usual != narrowest);
      usual = narrowest;
      into.back() =
          side_by_side(narrowest, static_cast<std::int64_t>(std::min(before.size(), own.size())));
    }
    before = own;
  }
  if (!weigh) return {};
  return {into, crossing_bytes(request.model)};
}

}  // namespace stageline
