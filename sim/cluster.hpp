// The hardware: devices, host memories, links, and the routes between them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/base/units.hpp"
#include "sim/measured_collective.hpp"
#include "sim/model.hpp"

namespace stageline {

/// Dense arithmetic throughput of a device kind at one precision ("fp32", "tf32", "bf16", "fp16").
struct PeakRate {
  std::string precision;
  double flops = 0;  // floating-point operations per second

  friend bool operator==(const PeakRate&, const PeakRate&) = default;
};

struct DeviceKind {
  std::string name;             // "h100", as in model:resnet50@h100
  std::string title;            // "NVIDIA H100 SXM5 80 GB"
  std::optional<Bytes> memory;  // capacity; empty: unknown
  Bandwidth memory_bandwidth;   // of the device's own memory
  std::vector<PeakRate> peak;   // by precision
  double power_watts = 0;       // board power, while its ops run; 0: unknown
  double idle_watts = 0;        // while it waits in a step; 0: unknown
  std::string power_source;     // of both
  double price_per_hour = 0;    // US dollars; 0: unknown
  std::string price_source;
  std::string source;  // data sheet
  Bytes reserve{};     // of the memory: context and communication buffers

  friend bool operator==(const DeviceKind&, const DeviceKind&) = default;
};

struct Device {
  std::string name;             // "gpu0"
  int kind = -1;                // index into Cluster::kinds; -1: unnamed
  std::optional<Bytes> memory;  // capacity of this device; empty: unknown, and so is the fit
  double rate = 1;              // speed relative to the device the trace was measured on
  int host = -1;                // index into Cluster::hosts, its machine; -1: none
  Time op_overhead{};           // per compute op: launch, first touches; calibrated
  double memory_rate = 0;       // as rate, of layers bound by memory; 0: as rate
  Bytes reserve{};              // of the memory: context and communication buffers

  friend bool operator==(const Device&, const Device&) = default;
};

/// What training may fill of a device's memory: all but its reserve. Empty: the capacity is
/// unknown.
inline std::optional<Bytes> usable_memory(const Device& device) {
  if (!device.memory) return std::nullopt;
  return Bytes{std::max<std::int64_t>(device.memory->count - device.reserve.count, 0)};
}

struct Host {
  std::string name;
  std::optional<Bytes> memory;
  bool relays = true;  // bytes between devices may pass through it

  friend bool operator==(const Host&, const Host&) = default;
};

enum class Duplex : std::uint8_t { full, half };

/// The kind of a connection. Collectives take their constants from it.
enum class Tier : std::uint8_t { other, nvlink, pcie, network };
inline constexpr std::array all_tiers{Tier::other, Tier::nvlink, Tier::pcie, Tier::network};
inline constexpr int tiers = 4;
/// "nvlink", as in cluster files.
std::string_view name(Tier tier);

/// How bytes get over a link, where that is not simply as wide as the link is stated.
enum class Transport : std::uint8_t {
  stated,  // rdma, or a bus on which devices reach each other
  tcp,     // sockets, which carry less than a fast NIC
  host,    // a bus on which they do not: what devices send each other is staged in host memory
};

/// A cable, bus or port. Its ends are nodes: devices first (0..D-1), then hosts, then switches.
/// Transfers share a link first come, first served, or at max-min fair rates (Sharing); a
/// half-duplex one in both directions together.
struct Link {
  std::string name;
  int from = 0;
  int to = 0;
  Bandwidth bandwidth;
  Time latency{};
  Duplex duplex = Duplex::full;
  std::optional<Time> latency_back{};  // from `to` to `from`, if it differs
  Tier tier = Tier::other;
  Transport transport = Transport::stated;

  Time back() const { return latency_back.value_or(latency); }
  friend bool operator==(const Link&, const Link&) = default;
};

/// What a tensor takes from the ops at its ends where devices share memory and no engine copies, as
/// between cores: the op that makes it takes bytes / `write` at least, since the reader's cache
/// still has those lines, and the op that reads it bytes / `read` longer, since the maker's cache
/// has them.
struct Handover {
  Bandwidth write = Bandwidth::unlimited();
  Bandwidth read = Bandwidth::unlimited();

  bool is_free() const { return write.is_unlimited() && read.is_unlimited(); }
  friend bool operator==(const Handover&, const Handover&) = default;
};

/// Machines that one NVLink domain joins, as the trays of a rack: as many in each rack, and in the
/// order of the devices.
struct Racks {
  int devices = 0;   // of a machine
  int machines = 0;  // of a rack; 0: no domain is wider than a machine

  /// Devices of a rack; 0: there are no racks.
  int size() const { return devices * machines; }
  friend bool operator==(const Racks&, const Racks&) = default;
};

/// Groups of ranks of which one is in several racks.
struct Straddling {
  std::string group;  // "tp", "cp", "ep", "shard-group"
  int ranks = 0;      // of one
  int groups = 0;     // that are in several racks
  friend bool operator==(const Straddling&, const Straddling&) = default;
};

/// What a job got of a cluster.
struct Allocation {
  std::string rule;  // "segment", "fill" or "file"
  int racks = 0;     // that it has devices of; 0: the cluster has none
  int each = 0;      // devices of a rack; 0: not as many of each
  int needed = 0;    // racks that equal shares would take, where the cluster has fewer; else 0
  std::vector<Straddling> straddling;
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

struct Cluster {
  std::string name;
  std::string source;
  std::vector<DeviceKind> kinds;
  std::vector<Device> devices;
  std::vector<Host> hosts;
  std::vector<std::string> switches;
  std::vector<Link> links;
  /// The share of the shorter op of an overlapped pair that the longer one hides, 0 to 1. Empty:
  /// what the transfers in both ops make of it, see pair_time() in sim/costs.hpp.
  std::optional<double> pair_overlap;
  /// interference[k - 1]: how many times as long a compute op takes while k other devices of its
  /// host compute, at least 1; the last entry is also that of more devices. Empty: as if alone.
  std::vector<double> interference;
  Handover handover;
  /// By tier: the compute of a device takes 1 + γ times as long while it communicates over links of
  /// that tier; 0 to 0.4 as published. Communication over several tiers at once adds up.
  std::array<double, tiers> overlap_slowdown{};
  /// The same while point-to-point messages and copies to the host move; empty: the same γ.
  std::optional<std::array<double, tiers>> message_slowdown;
  /// By tier: a transfer over it takes 1 + γ' times as long while one of its devices computes; it
  /// keeps its share of the links meanwhile.
  std::array<double, tiers> transfer_slowdown{};
  /// Measured on this cluster; they go before built-in constants.
  std::vector<MeasuredCollective> collectives;
  Racks racks;
  /// Where it is what a job got of more racks than one, or was named (cost_models/network/
  /// allocation.hpp).
  std::optional<Allocation> allocation;

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// How transfers share a link: one after another in the order of their requests, or at once at
/// max-min fair rates.
enum class Sharing : std::uint8_t { fifo, fair };
inline constexpr std::array all_sharings{Sharing::fifo, Sharing::fair};
/// "fair", as in --sharing.
std::string_view name(Sharing sharing);

/// One route from node to node, or the routes of several transfers that progress together: the
/// bandwidth of a transfer that is alone (the least of capacity / load), the sum of the latencies,
/// and the shared resources it occupies (see Network::resources) while bytes move.
struct Route {
  Bandwidth bandwidth = Bandwidth::unlimited();
  Time latency{};
  std::vector<int> resources;
  std::vector<double> load;  // by entry of resources: bytes across it a byte of the transfer, > 0;
                             // empty: 1 each
  Tier tier = Tier::other;   // the slowest kind of link on it: the last of all_tiers

  bool is_free() const { return bandwidth.is_unlimited() && latency == Time{}; }
  friend bool operator==(const Route&, const Route&) = default;
};

class FoundRoutes;  // sim/routes.hpp

/// The routes between devices, and from each device to its host and back.
struct Network {
  int devices = 0;
  std::vector<Route> routes;           // devices × devices, row = from; empty: those found
  std::shared_ptr<FoundRoutes> found;  // by pair, when asked for; null: every route is free
  std::vector<Route> to_host;          // by device; free where there is no host link
  std::vector<Route> from_host;        // by device; free where there is no host link
  std::vector<int> host;               // by device, index into hosts; 0 for devices without one
  std::vector<std::string> hosts;      // names; "host" where the cluster has none
  std::vector<std::string> resources;  // "gpu0>nvswitch"; a half-duplex link is one resource
  std::vector<Bandwidth> capacity;     // by resource

  /// The route between two devices; one that is found is valid as long as `found`. Thread-safe.
  const Route& between(int from, int to) const {
    if (routes.empty()) return found_between(from, to);
    return routes[as_size(from) * as_size(devices) + as_size(to)];
  }

 private:
  const Route& found_between(int from, int to) const;
};

/// With no links: every route is free. One host.
Network free_network(int devices);

/// Routes of least latency, and among those the one whose narrowest link is widest (Dijkstra).
/// Throws UsageError, with the names of both, when two devices are not connected although there are
/// links; with no links every route is free (communication is not modelled). Routes between devices
/// are looked for when they are asked for: of the million pairs of 1,024 devices a pipeline uses
/// two thousand.
Network network_of(const Cluster& cluster);

/// The first `count` devices of the cluster, with all hosts, switches and links. Throws UsageError,
/// with both numbers, when the cluster has fewer.
Cluster first_devices(Cluster cluster, int count);

/// These devices of the cluster in this order, each once, with all hosts, switches and links among
/// what is left.
Cluster with_devices(Cluster cluster, const std::vector<int>& devices);

/// `count` equal devices gpu0.. . With a link, each has one full-duplex port of that bandwidth on a
/// common switch, shared by all messages that the device sends (or receives) at the same time;
/// `latency` is that of the whole route from device to device, which passes two ports: the first
/// one has all of it. Without a link communication is free. With a `host` link each device also has
/// a full-duplex link of its own to a common host memory, used for offloading only; without one
/// offloading is free.
struct LinkSpec {
  Bandwidth bandwidth;
  Time latency{};
};
Cluster uniform_cluster(int count, std::optional<LinkSpec> link, std::optional<Bytes> memory,
                        std::optional<LinkSpec> host = std::nullopt,
                        std::optional<Bytes> host_memory = std::nullopt);

}  // namespace stageline
