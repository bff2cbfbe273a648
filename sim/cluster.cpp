// Finds routes between devices, and builds uniform clusters.
#include "sim/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <limits>
#include <tuple>

#include "sim/errors.hpp"
#include "sim/index.hpp"

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

struct Wire {  // one direction of a link
  Length length;
  std::size_t link = 0;
  int resource = 0;  // the resource that bytes occupy in this direction
  int opposite = 0;  // in the other direction; the same on a half-duplex link
  Time back{};       // latency in the other direction
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Wire>;
using Edge = Graph::edge_descriptor;

// Bytes do not travel through a third device: of all devices, only the source is left by its links.
struct FromSourceOrRelay {
  const Graph* graph = nullptr;
  const Cluster* cluster = nullptr;
  std::size_t source = 0;
  bool operator()(const Edge& edge) const {
    const std::size_t from = boost::source(edge, *graph);
    const std::size_t devices = cluster->devices.size();
    const bool host = from >= devices && from < devices + cluster->hosts.size();
    return from == source || (host ? cluster->hosts[from - devices].relays : from >= devices);
  }
};

std::string node_name(const Cluster& cluster, int node) {
  auto index = as_size(node);
  if (index < cluster.devices.size()) return cluster.devices[index].name;
  index -= cluster.devices.size();
  if (index < cluster.hosts.size()) return cluster.hosts[index].name;
  return cluster.switches[index - cluster.hosts.size()];
}

// Finds the routes from one device to every reachable node.
class RoutesFrom {
 public:
  RoutesFrom(const Graph& graph, const Cluster& cluster, std::size_t source)
      : graph_(graph),
        cluster_(cluster),
        source_(source),
        length_(boost::num_vertices(graph), unreachable),
        by_(boost::num_vertices(graph)) {
    const boost::filtered_graph<Graph, FromSourceOrRelay> allowed(graph,
                                                                  {&graph, &cluster, source});
    boost::dijkstra_shortest_paths(
        allowed, source,
        boost::weight_map(get(&Wire::length, allowed))
            .distance_map(boost::make_iterator_property_map(length_.begin(),
                                                            get(boost::vertex_index, allowed)))
            .distance_zero(Length{})
            .distance_inf(unreachable)
            .distance_compare(std::less<Length>())
            .distance_combine(std::plus<Length>())
            .visitor(boost::make_dijkstra_visitor(boost::record_edge_predecessors(
                boost::make_iterator_property_map(by_.begin(), get(boost::vertex_index, allowed)),
                boost::on_edge_relaxed()))));
  }

  bool reaches(std::size_t node) const {
    return node == source_ || length_[node].latency < unreachable.latency;
  }

  Route route_to(std::size_t node) const {
    Route route = route_from(node, &Wire::resource);
    route.latency = Time{length_[node].latency};
    std::reverse(route.resources.begin(), route.resources.end());
    return route;
  }

  // The same links, walked back to the source.
  Route route_back_from(std::size_t node) const {
    Route route = route_from(node, &Wire::opposite);
    for (; node != source_; node = boost::source(by_[node], graph_)) {
      route.latency += graph_[by_[node]].back;
    }
    return route;
  }

 private:
  // The route without its latency.
  Route route_from(std::size_t node, int Wire::*resource) const {
    Route route;
    while (node != source_) {
      const Wire& wire = graph_[by_[node]];
      const Link& link = cluster_.links[wire.link];
      route.bandwidth = std::min(route.bandwidth, link.bandwidth);
      route.resources.push_back(wire.*resource);
      node = boost::source(by_[node], graph_);
    }
    return route;
  }

  const Graph& graph_;
  const Cluster& cluster_;
  std::size_t source_;
  std::vector<Length> length_;
  std::vector<Edge> by_;
};

}  // namespace

Network network_of(const Cluster& cluster) {
  const std::size_t devices = cluster.devices.size();
  Network network;
  network.devices = static_cast<int>(devices);
  network.routes.resize(devices * devices);
  network.to_host.resize(devices);
  network.from_host.resize(devices);
  for (const Host& host : cluster.hosts) network.hosts.push_back(host.name);
  if (network.hosts.empty()) network.hosts.emplace_back("host");
  for (const Device& device : cluster.devices) network.host.push_back(std::max(device.host, 0));
  if (cluster.links.empty()) return network;

  Time slowest{};
  for (const Link& link : cluster.links) slowest = std::max(slowest, link.latency);
  const std::size_t most_links = cluster.hosts.size() + cluster.switches.size() + 1;  // bound
  if (static_cast<double>(slowest.count()) * static_cast<double>(most_links) >=
      static_cast<double>(unreachable.latency)) {
    throw UsageError(fmt::format(
        "cluster \"{}\": a route of up to {} links with latencies up to {} may add up to more than "
        "{:.3g} s, the most that is looked for; check the unit of the latencies",
        cluster.name, most_links, print(slowest), static_cast<double>(unreachable.latency) / 1e12));
  }

  Graph graph(devices + cluster.hosts.size() + cluster.switches.size());
  for (std::size_t i = 0; i < cluster.links.size(); ++i) {
    const Link& link = cluster.links[i];
    const double inverse = link.bandwidth.is_unlimited()
                               ? 0
                               : 1.0 / static_cast<double>(link.bandwidth.bytes_per_second);
    const Length length{link.latency.count(), inverse, 1};
    const Length length_back{link.back().count(), inverse, 1};
    const bool half = link.duplex == Duplex::half;
    const auto there = static_cast<int>(network.resources.size());
    const auto back = half ? there : there + 1;
    const std::string from = node_name(cluster, link.from);
    const std::string to = node_name(cluster, link.to);
    network.resources.push_back(from + (half ? "-" : ">") + to);
    if (!half) network.resources.push_back(to + ">" + from);
    const auto a = as_size(link.from);
    const auto b = as_size(link.to);
    boost::add_edge(a, b, Wire{length, i, there, back, link.back()}, graph);
    boost::add_edge(b, a, Wire{length_back, i, back, there, link.latency}, graph);
  }
  for (std::size_t from = 0; from < devices; ++from) {
    const RoutesFrom routes(graph, cluster, from);
    for (std::size_t to = 0; to < devices; ++to) {
      if (to == from) continue;
      if (!routes.reaches(to)) {
        throw UsageError(fmt::format(
            "cluster \"{}\": no link leads from {} to {}; every pair of devices must be joined, "
            "directly or through hosts and switches",
            cluster.name, cluster.devices[from].name, cluster.devices[to].name));
      }
      network.routes[from * devices + to] = routes.route_to(to);
    }
    const int host = cluster.devices[from].host;
    if (host < 0) continue;
    const std::size_t node = devices + as_size(host);
    if (!routes.reaches(node)) continue;
    network.to_host[from] = routes.route_to(node);
    network.from_host[from] = routes.route_back_from(node);
  }
  return network;
}

Cluster first_devices(Cluster cluster, int count) {
  const int have = static_cast<int>(cluster.devices.size());
  if (count < 1) throw UsageError(fmt::format("--devices must be at least 1 (it is {})", count));
  if (count > have) {
    throw UsageError(fmt::format(
        "cluster \"{}\" has {} device{}, and {} were asked for; give --devices {} or fewer, "
        "another --cluster, or equal devices by --link",
        cluster.name, have, have == 1 ? "" : "s", count, have));
  }
  const int dropped = have - count;
  cluster.devices.resize(as_size(count));
  const auto gone = [&](int node) { return node >= count && node < have; };
  std::erase_if(cluster.links, [&](const Link& link) { return gone(link.from) || gone(link.to); });
  for (Link& link : cluster.links) {
    if (link.from >= have) link.from -= dropped;
    if (link.to >= have) link.to -= dropped;
  }
  return cluster;
}

Cluster uniform_cluster(int count, std::optional<LinkSpec> link, std::optional<Bytes> memory,
                        std::optional<LinkSpec> host, std::optional<Bytes> host_memory) {
  if (count < 1) throw UsageError(fmt::format("--devices must be at least 1 (it is {})", count));
  Cluster cluster;
  cluster.name = fmt::format("{} equal device{}", count, count == 1 ? "" : "s");
  const bool with_host = host || host_memory;
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = fmt::format("gpu{}", i);
    device.memory = memory;
    device.host = with_host ? 0 : -1;
    cluster.devices.push_back(device);
  }
  if (with_host) cluster.hosts.push_back({"host", host_memory, false});
  if (!link && !host) return cluster;
  // A link to the host alone: then devices reach each other at once, as without any link.
  const LinkSpec port = link.value_or(LinkSpec{Bandwidth::unlimited(), Time{}});
  cluster.switches.emplace_back("switch");
  const int common = count + static_cast<int>(cluster.hosts.size());
  for (int i = 0; i < count; ++i) {
    // Every route leaves by one port and arrives by another: its latency is that of the first.
    Link out{fmt::format("port{}", i), i, common, port.bandwidth, port.latency, Duplex::full};
    if (port.latency != Time{}) out.latency_back = Time{};
    cluster.links.push_back(std::move(out));
  }
  for (int i = 0; host && i < count; ++i) {
    cluster.links.push_back(
        {fmt::format("host{}", i), i, count, host->bandwidth, host->latency, Duplex::full});
  }
  return cluster;
}

}  // namespace stageline
