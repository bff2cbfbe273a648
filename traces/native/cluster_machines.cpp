// Repeats a machine, and joins the copies.
//
//   a NIC of its own                    shared, or with "pcie"
//     m0.gpu0 ───── rail0 ──┐             m0.gpu0 ──┐
//     m0.gpu1 ───── rail1 ──┼── spine               ├── m0.nic0 ───── rail0
//     m1.gpu0 ───── rail0 ──┘             m0.gpu1 ──┘
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/index.hpp"
#include "traces/native/cluster_parts.hpp"

namespace stageline {
namespace {

// What NICs of several machines bring into a switch, or a share of it.
Bandwidth bandwidth_of(double bytes_per_second) {
  constexpr auto most = static_cast<double>(std::int64_t{1} << 62U);
  if (bytes_per_second >= most) return Bandwidth::unlimited();
  return Bandwidth{std::max<std::int64_t>(std::llround(bytes_per_second), 1)};
}

std::string ends_of(const Cluster& cluster, int from, int to) {
  const auto name = [&](int node) -> const std::string& {
    auto at = as_size(node);
    if (at < cluster.devices.size()) return cluster.devices[at].name;
    at -= cluster.devices.size();
    if (at < cluster.hosts.size()) return cluster.hosts[at].name;
    return cluster.switches[at - cluster.hosts.size()];
  };
  return fmt::format("{}-{}", name(from), name(to));
}

// The same machine with a host, by which machines are known apart.
Cluster with_host(Cluster machine) {
  const int devices = static_cast<int>(machine.devices.size());
  machine.hosts.push_back({"host", std::nullopt});
  for (Device& device : machine.devices) device.host = 0;
  for (Link& link : machine.links) {
    if (link.from >= devices) ++link.from;
    if (link.to >= devices) ++link.to;
  }
  return machine;
}

class Repeater {
 public:
  Repeater(Cluster machine, const Machines& machines)
      : machine_(std::move(machine)), machines_(machines), all_(machine_) {}

  Cluster repeated() {
    all_.devices.clear();
    all_.hosts.clear();
    all_.switches.clear();
    all_.links.clear();
    repeat_nodes();
    repeat_links();
    if (machines_.fabric && machines_.domains() > 1) join(*machines_.fabric);
    return std::move(all_);
  }

 private:
  int devices() const { return static_cast<int>(machine_.devices.size()); }
  int hosts() const { return static_cast<int>(machine_.hosts.size()); }

  static std::string prefix(int machine) { return fmt::format("m{}.", machine); }

  int add_switch(std::string name) {
    all_.switches.push_back(std::move(name));
    return (devices() + hosts()) * machines_.count + static_cast<int>(all_.switches.size()) - 1;
  }

  // Devices, then hosts, then switches: the nodes of the machines in the order of Link.
  void repeat_nodes() {
    all_.devices.reserve(as_size(devices()) * as_size(machines_.count));
    for (int m = 0; m < machines_.count; ++m) {
      for (Device device : machine_.devices) {
        device.name = prefix(m) + device.name;
        if (device.host >= 0) device.host += m * hosts();
        all_.devices.push_back(std::move(device));
      }
      for (Host host : machine_.hosts) {
        host.name = prefix(m) + host.name;
        all_.hosts.push_back(std::move(host));
      }
    }
    switch_node_.resize(as_size(machines_.count));
    for (int m = 0; m < machines_.count; ++m) {
      for (std::size_t s = 0; s < machine_.switches.size(); ++s) {
        const std::string& name = machine_.switches[s];
        std::vector<int>& own = nth(switch_node_, m);
        if (!machines_.shared[s]) {
          own.push_back(add_switch(prefix(m) + name));
        } else if (m % machines_.domain != 0) {
          own.push_back(nth(switch_node_, m - 1)[s]);
        } else if (machines_.domains() == 1) {
          own.push_back(add_switch(name));
        } else {
          own.push_back(add_switch(fmt::format("d{}.{}", m / machines_.domain, name)));
        }
      }
    }
  }

  // A node of machine `m` by its number in one machine alone.
  int node_of(int m, int node) const {
    if (node < devices()) return m * devices() + node;
    if (node < devices() + hosts()) {
      return machines_.count * devices() + m * hosts() + node - devices();
    }
    return nth(nth(switch_node_, m), node - devices() - hosts());
  }

  bool is_shared(int node) const {
    const int at = node - devices() - hosts();
    return at >= 0 && nth(machines_.shared, at);
  }

  void repeat_links() {
    all_.links.reserve(machine_.links.size() * as_size(machines_.count));
    for (int m = 0; m < machines_.count; ++m) {
      for (const Link& of_machine : machine_.links) {
        // Between two shared switches there is one link a domain.
        const bool once = is_shared(of_machine.from) && is_shared(of_machine.to);
        if (once && m % machines_.domain != 0) continue;
        Link link = of_machine;
        link.from = node_of(m, link.from);
        link.to = node_of(m, link.to);
        const bool named = link.name != ends_of(machine_, of_machine.from, of_machine.to);
        link.name = named ? prefix(m) + link.name : ends_of(all_, link.from, link.to);
        all_.links.push_back(std::move(link));
      }
    }
  }

  void add_link(std::string name, int from, int to, Bandwidth bandwidth, Time latency, Tier tier,
                Transport transport = Transport::stated) {
    Link link;
    link.name = name.empty() ? ends_of(all_, from, to) : std::move(name);
    link.from = from;
    link.to = to;
    link.bandwidth = bandwidth;
    link.latency = latency;
    link.tier = tier;
    link.transport = transport;
    all_.links.push_back(std::move(link));
  }

  void join(const Fabric& fabric) {
    const int rails = static_cast<int>(fabric.rails.size());
    const int in_leaf = fabric.leaf_machines > 0 ? fabric.leaf_machines : machines_.count;
    const int leaves = (machines_.count + in_leaf - 1) / in_leaf;
    std::vector<int> node;  // of the switch, by leaf and rail
    for (int leaf = 0; leaf < leaves; ++leaf) {
      for (const std::string& rail : fabric.rails) {
        node.push_back(add_switch(leaves == 1 ? rail : fmt::format("leaf{}.{}", leaf, rail)));
      }
    }
    into_.assign(node.size(), 0);
    for (int m = 0; m < machines_.count; ++m) {
      const int leaf = m / in_leaf;
      int nic = 0;  // of the machine
      for (const Nics& nics : fabric.nics) join(nics, m, leaf * rails, rails, node, nic);
    }
    if (!fabric.spine || node.size() == 1) return;
    const int spine = add_switch("spine");
    for (std::size_t s = 0; s < node.size(); ++s) {
      if (into_[s] == 0) continue;  // no NIC is on this rail
      add_link("", node[s], spine, bandwidth_of(into_[s] / fabric.oversubscription),
               fabric.spine_latency, Tier::network);
    }
  }

  // Spread in their order: twelve devices on eight ports are 2, 1, 2, 1, … of them.
  static int port_of(int device, int ports, int served) { return device * ports / served; }

  // Joins the NICs of machine `m` to their switches; `nic` counts on.
  void join(const Nics& nics, int m, int first_rail, int rails, const std::vector<int>& node,
            int& nic) {
    const int served = static_cast<int>(nics.devices.size());
    const int ports = std::min(nics.count, served);  // NICs of one device are one port
    const int in_port = nics.count / ports;
    const bool apart = served > ports || nics.pcie.has_value();
    const double each = static_cast<double>(nics.bandwidth.bytes_per_second) * in_port;
    const Bandwidth bandwidth = nics.bandwidth.is_unlimited() ? nics.bandwidth : bandwidth_of(each);
    for (int port = 0; port < ports; ++port, ++nic) {
      const int on = first_rail + nics.rail.value_or(nic % rails);
      nth(into_, on) += each;
      std::string name = prefix(m) + nics.name;
      if (nics.count > 1) name += std::to_string(port * in_port);
      if (!apart) {
        add_link(std::move(name), node_of(m, nth(nics.devices, port)), nth(node, on), bandwidth,
                 nics.latency, Tier::network, nics.transport);
        continue;
      }
      // The latency is on the side of the devices, so that what they send each other through
      // their NIC is not faster than what they send through their own links.
      const int own = add_switch(std::move(name));
      for (int k = 0; k < served; ++k) {
        if (port_of(k, ports, served) != port) continue;
        add_link("", node_of(m, nth(nics.devices, k)), own,
                 nics.pcie.value_or(Bandwidth::unlimited()), nics.latency, Tier::pcie);
      }
      add_link("", own, nth(node, on), bandwidth, Time{}, Tier::network, nics.transport);
    }
  }

  Cluster machine_;
  const Machines& machines_;
  Cluster all_;
  std::vector<std::vector<int>> switch_node_;  // by machine, then by switch of it
  std::vector<double> into_;                   // by leaf and rail: bytes a second of its NICs
};

}  // namespace

Cluster repeated(const Cluster& machine, const Machines& machines) {
  if (machines.count == 1) return machine;
  if (machine.hosts.empty()) return Repeater(with_host(machine), machines).repeated();
  return Repeater(machine, machines).repeated();
}

}  // namespace stageline
