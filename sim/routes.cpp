// Finds routes between devices by Dijkstra's algorithm, over flat arrays: a cluster of 1,024
// devices is searched from each of them.
#include "sim/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/graph/detail/d_ary_heap.hpp>
#include <boost/property_map/property_map.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/transport.hpp"

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

namespace {

// Routes of so many devices that a search from each would take their number squared.
//
// Bytes pass through no third device, so a route is one link, or it enters the relays by a link of
// its beginning and leaves them by one of its end. Few relays lie between others (switches of
// rails, a spine): from each of these all others are searched once. The rest have one way on, and
// machines are such leaves.
//
//     m0.gpu0 ── nvswitch        m0.gpu0 ── NIC ── rail0 ── spine ── rail1 ── NIC ── m1.gpu1
//     device     leaf            device     leaf   core     core     core     leaf   device
//
// Among routes of one length it takes the one by the first link of the beginning and of the end.
class RelayRoutes {
 public:
  RelayRoutes(std::size_t devices, const std::vector<bool>& relays, const std::vector<int>& first,
              const std::vector<LinkSide>& wires)
      : relays_(relays), first_(first), wires_(wires), core_(relays.size(), -1) {
    for (std::size_t node = devices; node < relays.size(); ++node) {
      if (!relays[node] || others_of(node) < 2) continue;
      core_[node] = static_cast<int>(core_nodes_.size());
      core_nodes_.push_back(static_cast<int>(node));
    }
    searched_.resize(core_nodes_.size());
    sides_.resize(wires.size() / 2, {-1, -1});
    for (int w = 0; w < static_cast<int>(wires.size()); ++w) {
      std::array<int, 2>& sides = nth(sides_, nth(wires, w).link);
      (sides[0] < 0 ? sides[0] : sides[1]) = w;
    }
    way_up_.assign(relays.size(), -1);
    way_down_.assign(relays.size(), -1);
    for (std::size_t node = devices; node < relays.size(); ++node) {
      if (relays[node] && core_[node] < 0) find_ways(static_cast<int>(node));
    }
  }

  // Appends the wires from the end to the beginning, as they are; none where no route leads.
  void append_path(int source, int node, std::vector<int>& path) {
    Length shortest = unreachable;
    const auto take = [&](Length length, auto append) {
      if (!(length < shortest)) return;
      shortest = length;
      path.clear();
      append();
    };
    for (int w = nth(first_, source); w < nth(first_, source + 1); ++w) {
      const LinkSide& out = nth(wires_, w);
      if (out.to == node) {
        take(out.length, [&] { path.push_back(w); });
        continue;
      }
      if (!relays_[as_size(out.to)]) continue;
      // The wires into a node are those that leave it, in the other direction.
      for (int v = nth(first_, node); v < nth(first_, node + 1); ++v) {
        const LinkSide& back = nth(wires_, v);
        if (back.to == source || !relays_[as_size(back.to)]) continue;
        const Between middle = between(out.to, back.to);
        if (!middle.joined) continue;
        const int in = opposite_of(v);
        take(out.length + middle.length + nth(wires_, in).length, [&] {
          path.push_back(in);
          append_between(out.to, back.to, path);
          path.push_back(w);
        });
      }
      // The end may be a relay, as a host is.
      if (relays_[as_size(node)]) {
        const Between rest = between(out.to, node);
        if (!rest.joined) continue;
        take(out.length + rest.length, [&] {
          append_between(out.to, node, path);
          path.push_back(w);
        });
      }
    }
  }

 private:
  struct Between {
    bool joined = false;
    Length length{};
  };
  struct Searched {
    std::vector<Length> length;  // by core relay
    std::vector<int> wire_to;    // by core relay; -1: none, or where it began
  };

  // How many other relays it is linked to.
  std::size_t others_of(std::size_t node) const {
    std::vector<int> others;
    for (int w = first_[node]; w < first_[node + 1]; ++w) {
      const int to = nth(wires_, w).to;
      if (relays_[as_size(to)] && as_size(to) != node) others.push_back(to);
    }
    std::sort(others.begin(), others.end());
    return static_cast<std::size_t>(std::unique(others.begin(), others.end()) - others.begin());
  }

  // The other direction of a wire. Links lead both ways, and the two sides of one have two wires.
  int opposite_of(int wire) const {
    const std::array<int, 2>& sides = nth(sides_, nth(wires_, wire).link);
    return sides[0] == wire ? sides[1] : sides[0];
  }

  // The shortest wires from a leaf to its only other relay, and back; -1: there are none.
  void find_ways(int leaf) {
    const auto keep_shorter = [&](int& best, int w) {
      if (best < 0 || nth(wires_, w).length < nth(wires_, best).length) best = w;
    };
    for (int w = nth(first_, leaf); w < nth(first_, leaf + 1); ++w) {
      const int to = nth(wires_, w).to;
      if (!relays_[as_size(to)] || to == leaf) continue;
      keep_shorter(nth(way_up_, leaf), w);
      keep_shorter(nth(way_down_, leaf), opposite_of(w));
    }
  }

  // Leads one relay to another; calls `step` with each wire, the last one first, if there is one.
  template <typename Step>
  bool walk(int from, int to, const Step& step) {
    if (from == to) return true;
    const bool leaf = nth(core_, from) < 0;
    const int up = leaf ? nth(way_up_, from) : -1;
    if (leaf && up < 0) return false;
    if (leaf && nth(wires_, up).to == to) {
      step(up);
      return true;
    }
    const int down = nth(core_, to) < 0 ? nth(way_down_, to) : -1;
    if (nth(core_, to) < 0 && down < 0) return false;
    const int begin = leaf ? nth(wires_, up).to : from;
    const int end = down < 0 ? to : nth(wires_, down).from;
    if (nth(core_, begin) < 0 || nth(core_, end) < 0) return false;  // of two leaves, other ones
    const Searched& found = searched(nth(core_, begin));
    if (begin != end && nth(found.wire_to, nth(core_, end)) < 0) return false;
    if (down >= 0) step(down);
    for (int at = end; at != begin;) {
      const int w = nth(found.wire_to, nth(core_, at));
      step(w);
      at = nth(wires_, w).from;
    }
    if (up >= 0) step(up);
    return true;
  }

  Between between(int from, int to) {
    Between found;
    found.joined =
        walk(from, to, [&](int w) { found.length = nth(wires_, w).length + found.length; });
    return found;
  }

  void append_between(int from, int to, std::vector<int>& path) {
    walk(from, to, [&](int w) { path.push_back(w); });
  }

  // Dijkstra's algorithm among the core's relays, which are few.
  const Searched& searched(int begin) {
    Searched& found = nth(searched_, begin);
    if (!found.length.empty()) return found;
    found.length.assign(core_nodes_.size(), unreachable);
    found.wire_to.assign(core_nodes_.size(), -1);
    std::set<std::pair<Length, int>> open{{Length{}, begin}};
    nth(found.length, begin) = Length{};
    while (!open.empty()) {
      const int at = open.begin()->second;
      open.erase(open.begin());
      const int node = nth(core_nodes_, at);
      for (int w = nth(first_, node); w < nth(first_, node + 1); ++w) {
        const LinkSide& wire = nth(wires_, w);
        const int next = nth(core_, wire.to);
        if (next < 0) continue;
        const Length through = nth(found.length, at) + wire.length;
        if (!(through < nth(found.length, next))) continue;
        open.erase({nth(found.length, next), next});
        nth(found.length, next) = through;
        nth(found.wire_to, next) = w;
        open.insert({through, next});
      }
    }
    return found;
  }

  const std::vector<bool>& relays_;
  const std::vector<int>& first_;
  const std::vector<LinkSide>& wires_;
  std::vector<std::array<int, 2>> sides_;  // by link: its wires
  std::vector<int> core_;                  // by node: its number among the core's; -1: none of them
  std::vector<int> core_nodes_;
  std::vector<int> way_up_;  // by node: of leaves
  std::vector<int> way_down_;
  std::vector<Searched> searched_;
};

}  // namespace

// The wires of a cluster, and by source the last wire of the route to each node.
class Routes::Search {
 public:
  Search(const Cluster& cluster, const std::vector<LinkSide>& wires, std::size_t most_searched)
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
    if (cluster.devices.size() > most_searched) {
      relay_routes_.emplace(cluster.devices.size(), relays_, first_, wires_);
    }
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

  bool reaches(int source, int node) {
    if (node == source) return true;
    if (relay_routes_) return !path(source, node).empty();
    return nth(from(source), node) >= 0;
  }

  // Where it reaches the node.
  Route route_to(int source, int node) {
    Route route = walked(source, node, &LinkSide::resource);
    for (const int w : path_) route.latency += Time{nth(wires_, w).length.latency};
    std::reverse(route.resources.begin(), route.resources.end());
    std::reverse(route.load.begin(), route.load.end());
    return route;
  }

  // Walks back to a node that has been passed. Returns whether a route leads there.
  bool append_resources(int source, int node, std::vector<bool>& passed,
                        std::vector<int>& resources) {
    if (relay_routes_) return append_resources(source, node, resources);
    if (!reaches(source, node)) return false;
    passed.resize(relays_.size());
    for (; node != source && !passed[as_size(node)]; node = last(source, node).from) {
      passed[as_size(node)] = true;
      resources.push_back(last(source, node).resource);
    }
    return true;
  }

  // Appends those of the whole route; returns whether one leads there.
  bool append_resources(int source, int node, std::vector<int>& resources) {
    if (!relay_routes_ && !reaches(source, node)) return false;
    const std::vector<int>& wires = path(source, node);
    for (const int w : wires) resources.push_back(nth(wires_, w).resource);
    return !wires.empty();
  }

  // Whether as many routes are kept as may be: where devices are not searched, a route is found
  // again in less time than the memory of all takes. Counts one more.
  bool is_full() {
    if (!relay_routes_ || ++kept_ < most_kept) return false;
    kept_ = 0;
    return true;
  }

  // The same links, walked back to the source.
  Route route_back_from(int source, int node) {
    Route route = walked(source, node, &LinkSide::opposite);
    for (const int w : path_) route.latency += nth(wires_, w).back;
    return route;
  }

 private:
  // The last wire on the route to a node that the source reaches.
  const LinkSide& last(int source, int node) { return nth(wires_, nth(nth(last_, source), node)); }

  // The wires of the route, the last one first; none where no route leads.
  const std::vector<int>& path(int source, int node) {
    path_.clear();
    if (relay_routes_) {
      relay_routes_->append_path(source, node, path_);
      return path_;
    }
    for (int at = node; at != source; at = last(source, at).from) {
      path_.push_back(nth(from(source), at));
    }
    return path_;
  }

  // The route without its latency, from its end to its beginning. Its wires are in path_ then.
  Route walked(int source, int node, int LinkSide::*resource) {
    Route route;
    const bool between_devices = as_size(node) < cluster_.devices.size();
    bool staged = false;
    for (const int w : path(source, node)) {
      const LinkSide& wire = nth(wires_, w);
      const Link& link = nth(cluster_.links, wire.link);
      const double load = between_devices ? staged_load(link) : 1;
      staged = staged || load != 1;
      route.bandwidth = std::min(route.bandwidth, over(link.bandwidth, load));
      route.resources.push_back(wire.*resource);
      route.load.push_back(load);
      if (load != 1 && wire.opposite != wire.resource) {
        route.resources.push_back(resource == &LinkSide::resource ? wire.opposite : wire.resource);
        route.load.push_back(load);
      }
      route.tier = std::max(route.tier, link.tier);
    }
    if (!staged) route.load.clear();
    return route;
  }

  // What a transfer gets that loads each byte so often.
  static Bandwidth over(Bandwidth bandwidth, double load) {
    if (load == 1 || bandwidth.is_unlimited()) return bandwidth;
    return {std::max<std::int64_t>(
        1, std::llround(static_cast<double>(bandwidth.bytes_per_second) / load))};
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

  static constexpr int most_kept = 32768;
  const Cluster& cluster_;
  int kept_ = 0;
  std::vector<bool> relays_;     // by node: whether bytes may pass through it
  std::vector<int> first_;       // by node: its first wire; one more at the end
  std::vector<LinkSide> wires_;  // by the node that they leave
  std::vector<Length> length_;
  std::vector<std::size_t> place_;  // in the heap
  std::vector<std::vector<int>> last_;
  std::optional<RelayRoutes> relay_routes_;  // of many devices
  std::vector<int> path_;
};

Routes::Routes(const Cluster& cluster, std::size_t most_searched)
    : cluster_(cluster), between_(cluster.devices.size()) {
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
  search_ = std::make_unique<Search>(cluster, wires, most_searched);
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
  const std::unordered_map<int, Route>& row = nth(between_, from);
  const auto found = row.find(to);
  if (found != row.end()) return found->second;
  if (!search_->reaches(from, to)) refuse_pair(from, to);
  if (search_->is_full()) {
    for (std::unordered_map<int, Route>& of_source : between_) of_source.clear();
  }
  return nth(between_, from).emplace(to, search_->route_to(from, to)).first->second;
}

void Routes::append_resources(int from, int to, std::vector<bool>& passed,
                              std::vector<int>& resources) {
  if (from == to || !search_) return;
  if (!search_->append_resources(from, to, passed, resources)) refuse_pair(from, to);
}

void Routes::append_resources(int from, int to, std::vector<int>& resources) {
  if (from == to || !search_) return;
  if (!search_->append_resources(from, to, resources)) refuse_pair(from, to);
}

Routes::ToHost Routes::host_routes(int device) {
  const int host = nth(cluster_.devices, device).host;
  if (host < 0 || !search_) return {};
  const int node = static_cast<int>(cluster_.devices.size()) + host;
  if (!search_->reaches(device, node)) return {};
  return {search_->route_to(device, node), search_->route_back_from(device, node)};
}

}  // namespace stageline
