// Reads the cluster that the user names, or makes one of equal devices.
#include "tools/inputs/clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/routes.hpp"
#include "sim/transport.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/bundled.hpp"

namespace stageline {
namespace {

constexpr int most_times = 65536;

// "h100x8*16" is h100x8, 16 times; a file may have a '*' in its name.
struct NamedCluster {
  std::string name;
  int times = 1;
};

NamedCluster parse_named(const std::string& text) {
  const std::size_t star = text.rfind('*');
  if (star == std::string::npos || is_input_file(text)) return {text, 1};
  const std::string times = text.substr(star + 1);
  const int count = parse_number<int>(times).value_or(0);
  if (count < 1 || count > most_times) {
    throw UsageError(
        fmt::format("--cluster {}: behind the * is how many times its machines are taken, a whole "
                    "number from 1 to {} (it is \"{}\")",
                    text, most_times, times));
  }
  return {text.substr(0, star), count};
}

// The text of a bundled cluster or of a file.
Cluster open_cluster(const std::string& name, const ClusterUse& use) {
  if (!is_input_file(name)) {
    const Bundled* const bundled = find_bundled(bundled_clusters(), name);
    if (bundled) return read_cluster(std::string(bundled->text), name, use);
    const std::vector<std::string> known = bundled_names(bundled_clusters());
    throw UsageError(
        fmt::format("there is no cluster \"{}\"{}; a cluster is a file or one of the {} that "
                    "`stageline list` names",
                    name, did_you_mean(name, known), known.size()));
  }
  return read_cluster(read_text(name), name, use);
}

// The memory and the reserve that flags give instead of a device's own.
void set_memory(Cluster& cluster, std::optional<Bytes> memory, std::optional<Bytes> reserve) {
  for (Device& device : cluster.devices) {
    if (memory) device.memory = memory;
    if (reserve) device.reserve = *reserve;
    if (device.memory && device.reserve > *device.memory) {
      throw UsageError(
          fmt::format("{}: a reserve of {} is more than the memory of {}; give a smaller --reserve "
                      "or a larger --memory",
                      device.name, print(device.reserve), print(*device.memory)));
    }
  }
}

// Says which links of a file are on no route between its devices, or between them and their hosts:
// its author may think that they count. Links of the network are left out. Empty: there are none,
// or the cluster is too large to look at every pair.
std::string note_on_unused(const Cluster& cluster) {
  constexpr std::size_t most_looked_at = 64;
  if (cluster.links.empty() || cluster.devices.size() > most_looked_at) return "";
  std::vector<bool> used;
  const auto mark = [&used](const Route& route) {
    for (const int resource : route.resources) used[as_size(resource)] = true;
  };
  try {
    Routes routes(cluster);
    used.resize(routes.names().size());
    const int devices = static_cast<int>(cluster.devices.size());
    for (int from = 0; from < devices; ++from) {
      for (int to = 0; to < devices; ++to) mark(routes.between(from, to));
      const Routes::ToHost host = routes.host_routes(from);
      mark(host.there);
      mark(host.back);
    }
  } catch (const UsageError&) {
    return "";  // two devices are not joined, which is refused where they are to exchange something
  }
  std::vector<std::string> unused;
  std::size_t resource = 0;
  for (const Link& link : cluster.links) {
    bool any = used[resource++];
    if (link.duplex == Duplex::full) any = used[resource++] || any;
    if (!any && link.tier != Tier::network) unused.push_back(link.name);
  }
  if (unused.empty()) return "";
  return fmt::format(
      "no route takes {} {}: other ways between the same devices have less latency",
      unused.size() == 1 ? "the link" : fmt::format("{} links, such as", unused.size()),
      unused.front());
}

ClusterUse use_of(const ClusterRequest& request, int times = 1) {
  return {times, request.groups, request.reserve.has_value(), request.overlap};
}

// The bundled cluster that has such a device; empty: there is none.
std::optional<NamedCluster> cluster_with(const std::string& kind) {
  for (const Bundled& bundled : bundled_clusters()) {
    for (const DeviceKind& known : kinds_of(bundled)) {
      if (known.name == kind) return NamedCluster{std::string(bundled.name), 1};
    }
  }
  return {};
}

// The least multiple of the machines that has so many devices, as "h100x8*8"; empty: none has.
std::string multiple_with(const ClusterChoice& choice, int devices) {
  if (choice.machine.empty() || choice.machine == "-") return {};
  try {
    const std::size_t each = open_cluster(choice.machine, {}).devices.size();
    const int times = static_cast<int>((as_size(devices) + each - 1) / each);
    open_cluster(choice.machine, {times});
    return fmt::format("{}*{}", choice.machine, times);
  } catch (const TraceError&) {
    return {};  // it has no network, or there would be too many
  }
}

}  // namespace

std::vector<DeviceKind> known_kinds() { return bundled_kinds(); }

ClusterChoice choose_cluster(const ClusterRequest& request) {
  ClusterChoice choice;
  choice.pair_overlap = request.pair_overlap;
  const bool equal = request.link || request.host_link || request.host_memory;
  if (!request.cluster.empty()) {
    if (equal) {
      throw UsageError(
          "--cluster already says its links and the memory of its hosts; leave out --link, "
          "--host-link and --host-memory, or --cluster");
    }
    if (request.cluster.starts_with('{')) {
      choice.fixed = read_cluster(request.cluster, "the cluster", use_of(request));
      choice.note = note_on_unused(*choice.fixed);
    } else {
      const NamedCluster named = parse_named(request.cluster);
      choice.fixed = open_cluster(named.name, use_of(request, named.times));
      choice.machine = named.name;
      if (is_input_file(named.name)) choice.note = note_on_unused(*choice.fixed);
    }
    set_memory(*choice.fixed, request.memory, request.reserve);
    return choice;
  }
  choice.link = request.link;
  choice.memory = request.memory;
  choice.reserve = request.reserve;
  choice.host_link = request.host_link;
  choice.host_memory = request.host_memory;
  if (!equal && !request.memory && !request.priced_for.empty()) {
    if (const std::optional<NamedCluster> priced = cluster_with(request.priced_for)) {
      choice.fixed = open_cluster(priced->name, use_of(request));
      choice.machine = priced->name;
      set_memory(*choice.fixed, {}, request.reserve);
      return choice;
    }
  }
  if (!request.memory && !request.priced_for.empty()) {
    for (const DeviceKind& kind : bundled_kinds(request.groups || request.reserve)) {
      if (kind.name != request.priced_for) continue;
      choice.memory = kind.memory;
      if (!choice.reserve && kind.reserve > Bytes{}) choice.reserve = kind.reserve;
    }
  }
  if (!choice.link) {
    choice.note = "communication is free: no --cluster and no --link was given";
  }
  return choice;
}

Cluster cluster_of(const ClusterChoice& choice, int devices, const Degrees& degrees) {
  Cluster cluster;
  if (!choice.fixed) {
    cluster =
        uniform_cluster(devices, choice.link, choice.memory, choice.host_link, choice.host_memory);
    set_memory(cluster, {}, choice.reserve);
  } else if (as_size(std::max(devices, 0)) <= choice.fixed->devices.size()) {
    cluster = allocated(*choice.fixed, devices, choice.allocation, degrees);
  } else {
    const std::string multiple = multiple_with(choice, devices);
    if (multiple.empty()) return first_devices(*choice.fixed, devices);  // throws
    const std::size_t have = choice.fixed->devices.size();
    throw UsageError(fmt::format(
        "cluster \"{}\" has {} device{}, and {} were asked for; give --devices {} or fewer, "
        "--cluster \"{}\" for more machines, or equal devices by --link",
        choice.fixed->name, have, have == 1 ? "" : "s", devices, have, multiple));
  }
  if (choice.pair_overlap) cluster.pair_overlap = *choice.pair_overlap;
  return cluster;
}

std::string other_placement(const ClusterRequest& request, const Cluster& job) {
  if (!request.placement.empty() || !job.allocation) return "";
  const Allocation& found = *job.allocation;
  // Full racks are those that are filled one by one.
  const bool shares = found.each > 0 && found.each < job.racks.size();
  return found.rule == "segment" && shares ? "fill" : "";
}

AllocationRequest parse_placement(const std::string& text) {
  if (text.empty() || text == "segment") return {AllocationRequest::Rule::segment};
  if (text == "fill") return {AllocationRequest::Rule::fill};
  if (!is_input_file(text)) {
    throw UsageError(fmt::format(
        "--placement is segment, fill, or a file with the names of devices by rank; there is no file \"{}\"",
        text));
  }
  std::istringstream words(read_text(text));
  AllocationRequest request{AllocationRequest::Rule::named};
  for (std::string name; words >> name;) request.devices.push_back(std::move(name));
  return request;
}

std::vector<std::string> transport_notes(const Cluster& cluster) {
  const auto any = [&](Transport transport) {
    return std::any_of(cluster.links.begin(), cluster.links.end(),
                       [&](const Link& link) { return link.transport == transport; });
  };
  std::vector<std::string> notes;
  if (any(Transport::tcp)) {
    notes.push_back(fmt::format(
        "links over tcp carry at most {}: assumed, by what NCCL reaches over one connection; others "
        "measured 0.7 to 1.2 times that, up to 3 where channels were tuned, and a tenth once; "
        "latencies are as stated",
        print(most_over_tcp)));
  }
  if (any(Transport::host)) {
    notes.push_back(fmt::format(
        "devices on PCIe that do not reach each other send through the host's memory, at {:g} of the "
        "link's rate for both ways together: assumed, by copies that were measured at 0.6 to 1.0 of "
        "it; what other traffic takes of that memory is not modelled",
        share_through_host));
  }
  return notes;
}

LinkSpec parse_link(const std::string& text, const std::string& what) {
  const std::size_t comma = text.find(',');
  LinkSpec link;
  try {
    link.bandwidth = parse_bandwidth(text.substr(0, comma));
    if (comma != std::string::npos) link.latency = parse_time(text.substr(comma + 1));
  } catch (const std::invalid_argument& error) {
    throw UsageError(
        fmt::format("{} {}: {}; a link is BANDWIDTH[,LATENCY]", what, text, error.what()));
  }
  return link;
}

}  // namespace stageline
