// Reads the cluster that the user names, or makes one of equal devices.
#include "tools/inputs/clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/bundled.hpp"

namespace stageline {

std::vector<DeviceKind> known_kinds() {
  std::vector<DeviceKind> kinds;
  for (const Bundled& bundled : bundled_clusters()) {
    for (const DeviceKind& kind :
         read_cluster(std::string(bundled.text), std::string(bundled.name)).kinds) {
      const bool known = std::any_of(kinds.begin(), kinds.end(),
                                     [&](const DeviceKind& k) { return k.name == kind.name; });
      if (!known) kinds.push_back(kind);
    }
  }
  return kinds;
}

ClusterChoice choose_cluster(const ClusterRequest& request) {
  ClusterChoice choice;
  choice.pair_overlap = request.pair_overlap;
  if (!request.cluster.empty()) {
    if (request.link || request.memory || request.host_link || request.host_memory) {
      throw UsageError(
          "--cluster already says its links and memories; leave out --link, --memory, --host-link "
          "and --host-memory, or --cluster");
    }
    if (request.cluster.starts_with('{')) {
      choice.fixed = read_cluster(request.cluster, "the cluster");
      return choice;
    }
    const Bundled* const bundled = find_bundled(bundled_clusters(), request.cluster);
    if (bundled && !is_input_file(request.cluster)) {
      choice.fixed = read_cluster(std::string(bundled->text), request.cluster);
      return choice;
    }
    if (!is_input_file(request.cluster)) {
      const std::vector<std::string> known = bundled_names(bundled_clusters());
      throw UsageError(fmt::format("there is no cluster \"{}\"{}; a cluster is a file or one of {}",
                                   request.cluster, did_you_mean(request.cluster, known),
                                   fmt::join(known, ", ")));
    }
    choice.fixed = read_cluster(read_text(request.cluster), request.cluster);
    return choice;
  }
  choice.link = request.link;
  choice.memory = request.memory;
  choice.host_link = request.host_link;
  choice.host_memory = request.host_memory;
  const bool equal = request.link || request.memory || request.host_link || request.host_memory;
  if (!equal && !request.priced_for.empty()) {
    for (const Bundled& bundled : bundled_clusters()) {
      Cluster cluster = read_cluster(std::string(bundled.text), std::string(bundled.name));
      const bool has =
          std::any_of(cluster.kinds.begin(), cluster.kinds.end(),
                      [&](const DeviceKind& kind) { return kind.name == request.priced_for; });
      if (!has) continue;
      choice.fixed = std::move(cluster);
      return choice;
    }
  }
  if (!request.memory) {
    for (const DeviceKind& kind : known_kinds()) {
      if (kind.name == request.priced_for) choice.memory = kind.memory;
    }
  }
  if (!choice.link) {
    choice.note = "communication is free: no --cluster and no --link was given";
  }
  return choice;
}

Cluster cluster_of(const ClusterChoice& choice, int devices) {
  Cluster cluster = choice.fixed ? first_devices(*choice.fixed, devices)
                                 : uniform_cluster(devices, choice.link, choice.memory,
                                                   choice.host_link, choice.host_memory);
  if (choice.pair_overlap) cluster.pair_overlap = *choice.pair_overlap;
  return cluster;
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
