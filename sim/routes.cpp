// Finds routes between devices by Dijkstra's algorithm, over flat arrays: a cluster of 1,024
// devices is searched from each of them.
#include "sim/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/detail/d_ary_heap.hpp>
#include <boost/property_map/property_map.hpp>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The length of a route: compared field by field.
struct Length {
  std::int64_t latency = 0;
  double seconds_per_byte = 0;
  int links = 0;
  friend auto operator<=>(const Length&, const Length&) = default;
  friend Length operator+(const Length& a, const Length& b) {
    return {a.latency + b.latency, std::max(a.seconds_per_byte, b.seconds_per_byte),
            a.links + b.links};
  }
};
constexpr Length unreachable{std::numeric_limits<std::int64_t>::max() / 4, 0, 0};

struct LinkSide {  // one direction of a link
  Length length;
  int from = 0;
  int to = 0;
  int link = 0;
  int resource = 0;  // the resource that bytes occupy in this direction
  int opposite = 0;  // in the other direction; the same on a half-duplex link
  Time back{};       // latency in the other direction
};

constexpr std::size_t not_in_heap = std::numeric_limits<std::size_t>::max();

std::string node_name(const Cluster& cluster, int node) {
  auto index = as_size(node);
  if (index < cluster.devices.size()) return cluster.devices[index].name;
  index -= cluster.devices.size();
  if (index < cluster.hosts.size()) return cluster.hosts[index].name;
  return cluster.switches[index - cluster.hosts.size()];
}

}  // namespace

// The wires of a cluster, and by source the last wire of the route to each node.
class Routes::Search {
 public:
  Search(const Cluster& cluster, const std::vector<LinkSide>& wires)
      : cluster_(cluster),
        relays_(cluster.devices.size() + cluster.hosts.size() + cluster.switches.size()),
        first_(relays_.size() + 1),
        length_(relays_.size()),
        place_(relays_.size(), not_in_heap),
        last_(cluster.devices.size()) {
    for (std::size_t node = cluster.devices.size(); node < relays_.size(); ++node) {
      const std::size_t host = node - cluster.devices.size();
      relays_[node] = host >= cluster.hosts.size() || cluster.hosts[host].relays;
    }
    // Sorted by the node that they leave; those of one node keep the order of the links.
    for (const LinkSide& wire : wires) ++nth(first_, wire.from + 1);
    for (std::size_t node = 1; node < first_.size(); ++node) first_[node] += first_[node - 1];
    wires_.resize(wires.size());
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (const LinkSide& wire : wires) nth(wires_, nth(next, wire.from)++) = wire;
  }

  struct Reach {
    std::vector<int> devices;  // over one link
    std::vector<int> groups;   // of relays that reach each other
  };
  // By device.
  std::vector<Reach> reach_of_devices() const {
    std::vector<int> group(relays_.size());
    std::iota(group.begin(), group.end(), 0);
    const auto find = [&](int node) {
      while (nth(group, node) != node) node = nth(group, node) = nth(group, nth(group, node));
      return node;
    };
    for (const LinkSide& wire : wires_) {
      if (relays_[as_size(wire.from)] && relays_[as_size(wire.to)]) {
        nth(group, find(wire.from)) = find(wire.to);
      }
    }
    std::vector<Reach> reach(cluster_.devices.size());
    for (const LinkSide& wire : wires_) {
      if (as_size(wire.from) >= reach.size()) continue;
      Reach& here = nth(reach, wire.from);
      if (as_size(wire.to) < reach.size()) here.devices.push_back(wire.to);
      if (relays_[as_size(wire.to)]) here.groups.push_back(find(wire.to));
    }
    return reach;
  }

  bool reaches(int source, int node) { return node == source || nth(from(source), node) >= 0; }

  // Where it reaches the node.
  Route route_to(int source, int node) {
    Route route = walked(source, node, &LinkSide::resource);
    for (int at = node; at != source; at = last(source, at).from) {
      route.latency += Time{last(source, at).length.latency};
    }
    std::reverse(route.resources.begin(), route.resources.end());
    return route;
  }

  // Walks back to a node that has been passed. Where it reaches the node.
  void append_resources(int source, int node, std::vector<bool>& passed,
                        std::vector<int>& resources) {
    passed.resize(relays_.size());
    for (; node != source && !passed[as_size(node)]; node = last(source, node).from) {
      passed[as_size(node)] = true;
      resources.push_back(last(source, node).resource);
    }
  }

  // The same links, walked back to the source.
  Route route_back_from(int source, int node) {
    Route route = walked(source, node, &LinkSide::opposite);
    for (int at = node; at != source; at = last(source, at).from) {
      route.latency += last(source, at).back;
    }
    return route;
  }

 private:
  // The last wire on the route to a node that the source reaches.
  const LinkSide& last(int source, int node) { return nth(wires_, nth(nth(last_, source), node)); }

  // The route without its latency, from its end to its beginning.
  Route walked(int source, int node, int LinkSide::*resource) {
    Route route;
    for (; node != source; node = last(source, node).from) {
      const LinkSide& wire = last(source, node);
      const Link& link = nth(cluster_.links, wire.link);
      route.bandwidth = std::min(route.bandwidth, link.bandwidth);
      route.resources.push_back(wire.*resource);
      route.tier = std::max(route.tier, link.tier);
    }
    return route;
  }

  // By node the index of the last wire; -1 where no route leads, and at the source.
  const std::vector<int>& from(int source) {
    std::vector<int>& wire_to = nth(last_, source);
    if (wire_to.empty()) find(source, wire_to);
    return wire_to;
  }

  // Dijkstra's algorithm. Bytes do not travel through a third device: of all devices, only the
  // source is left by its links. So the search ends when no node that relays is open any more.
  // Among routes of one length the first found stays; boost::dijkstra_shortest_paths, on the same
  // heap, takes the same one.
  void find(int source, std::vector<int>& wire_to) {
    wire_to.assign(relays_.size(), -1);
    std::fill(length_.begin(), length_.end(), unreachable);
    std::fill(place_.begin(), place_.end(), not_in_heap);
    using Places = boost::iterator_property_map<std::size_t*, boost::identity_property_map>;
    using Lengths = boost::iterator_property_map<const Length*, boost::identity_property_map>;
    boost::d_ary_heap_indirect<std::size_t, 4, Places, Lengths, std::less<>> open(
        Lengths(length_.data(), {}), Places(place_.data(), {}));
    int open_relays = 1;
    nth(length_, source) = Length{};
    open.push(as_size(source));
    while (open_relays > 0) {
      const std::size_t node = open.top();
      open.pop();
      if (!relays_[node] && node != as_size(source)) continue;
      --open_relays;
      for (int w = first_[node]; w < first_[node + 1]; ++w) {
        const LinkSide& wire = nth(wires_, w);
        const auto to = as_size(wire.to);
        const Length through = length_[node] + wire.length;
        if (to == as_size(source) || !(through < length_[to])) continue;
        length_[to] = through;
        if (wire_to[to] < 0) {
          open_relays += relays_[to] ? 1 : 0;
          open.push(to);
        } else {
          open.update(to);
        }
        wire_to[to] = w;
      }
    }
  }

  const Cluster& cluster_;
  std::vector<bool> relays_;     // by node: whether bytes may pass through it
  std::vector<int> first_;       // by node: its first wire; one more at the end
  std::vector<LinkSide> wires_;  // by the node that they leave
  std::vector<Length> length_;
  std::vector<std::size_t> place_;  // in the heap
  std::vector<std::vector<int>> last_;
};

Routes::Routes(const Cluster& cluster) : cluster_(cluster), between_(cluster.devices.size()) {
  if (cluster.links.empty()) return;
  check_latencies();
  std::vector<LinkSide> wires;
  wires.reserve(2 * cluster.links.size());
  names_.reserve(2 * cluster.links.size());
  for (std::size_t i = 0; i < cluster.links.size(); ++i) {
    const Link& link = cluster.links[i];
    const double inverse = link.bandwidth.is_unlimited()
                               ? 0
                               : 1.0 / static_cast<double>(link.bandwidth.bytes_per_second);
    const Length length{link.latency.count(), inverse, 1};
    const Length length_back{link.back().count(), inverse, 1};
    const bool half = link.duplex == Duplex::half;
    const auto there = static_cast<int>(names_.size());
    const auto back = half ? there : there + 1;
    const auto index = static_cast<int>(i);
    const std::string from = node_name(cluster, link.from);
    const std::string to = node_name(cluster, link.to);
    names_.push_back(from + (half ? "-" : ">") + to);
    if (!half) names_.push_back(to + ">" + from);
    capacity_.resize(names_.size(), link.bandwidth);
    wires.push_back({length, link.from, link.to, index, there, back, link.back()});
    wires.push_back({length_back, link.to, link.from, index, back, there, link.latency});
  }
  search_ = std::make_unique<Search>(cluster, wires);
}

Routes::~Routes() = default;

void Routes::check_latencies() const {
  Time slowest{};
  for (const Link& link : cluster_.links) slowest = std::max(slowest, link.latency);
  const std::size_t most_links = cluster_.hosts.size() + cluster_.switches.size() + 1;  // bound
  if (static_cast<double>(slowest.count()) * static_cast<double>(most_links) >=
      static_cast<double>(unreachable.latency)) {
    throw UsageError(fmt::format(
        "cluster \"{}\": a route of {} links of latency {} may take longer than {:.3g} s, the longest route; check the unit of the latencies",
        cluster_.name, most_links, print(slowest),
        static_cast<double>(unreachable.latency) / 1e12));
  }
}

void Routes::refuse_pair(int from, int to) const {
  throw UsageError(fmt::format(
      "cluster \"{}\": no link leads from {} to {}; every pair of devices must be joined, "
      "directly or through hosts and switches",
      cluster_.name, nth(cluster_.devices, from).name, nth(cluster_.devices, to).name));
}

// Links lead both ways, so two devices are joined by a link of their own, or where both have one to
// the same group of relays that reach each other.
void Routes::check_joined() const {
  if (!search_) return;
  const std::vector<Search::Reach> reach = search_->reach_of_devices();
  const int devices = static_cast<int>(reach.size());
  const auto common = [](const std::vector<int>& one, const std::vector<int>& other) {
    return std::find_first_of(one.begin(), one.end(), other.begin(), other.end()) != one.end();
  };
  for (const int group : reach.empty() ? std::vector<int>{} : reach.front().groups) {
    const auto has = [&](const Search::Reach& one) { return common(one.groups, {group}); };
    if (std::all_of(reach.begin(), reach.end(), has)) return;
  }
  for (int from = 0; from < devices; ++from) {
    const Search::Reach& here = nth(reach, from);
    for (int to = 0; to < devices; ++to) {
      if (to == from || common(here.devices, {to})) continue;
      if (!common(here.groups, nth(reach, to).groups)) refuse_pair(from, to);
    }
  }
}

const Route& Routes::between(int from, int to) {
  if (from == to || !search_) return free_;
  std::unordered_map<int, Route>& row = nth(between_, from);
  const auto found = row.find(to);
  if (found != row.end()) return found->second;
  if (!search_->reaches(from, to)) refuse_pair(from, to);
  return row.emplace(to, search_->route_to(from, to)).first->second;
}

void Routes::append_resources(int from, int to, std::vector<bool>& passed,
                              std::vector<int>& resources) {
  if (from == to || !search_) return;
  if (!search_->reaches(from, to)) refuse_pair(from, to);
  search_->append_resources(from, to, passed, resources);
}

Routes::ToHost Routes::host_routes(int device) {
  const int host = nth(cluster_.devices, device).host;
  if (host < 0 || !search_) return {};
  const int node = static_cast<int>(cluster_.devices.size()) + host;
  if (!search_->reaches(device, node)) return {};
  return {search_->route_to(device, node), search_->route_back_from(device, node)};
}

}  // namespace stageline
