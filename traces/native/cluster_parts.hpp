// Pieces of the cluster reader: fields with units, names, kinds of devices, and what joins
// machines.
#pragma once

#include <fmt/format.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/cluster.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

/// A text with a unit, parsed by one of the parse_* functions of sim/base/units.hpp. `example` is
/// quoted in the refusal of a number.
template <class Parse>
auto with_unit(const JsonNode& node, Parse parse, std::string_view example) {
  if (node.kind() == JsonKind::number) {
    node.refuse(
        fmt::format("{} has no unit; this must be a text, such as \"{}\"", node.number(), example));
  }
  const std::string text = node.text();
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    node.refuse(error.what());
  }
}

/// "450GB/s", "1.5us", "2GB".
Bandwidth read_bandwidth(const JsonNode& node);
Time read_latency(const JsonNode& node);
Bytes read_reserve(const JsonNode& node);
/// "80GB", or a number of bytes, as the first files had it.
std::optional<Bytes> read_memory(const JsonNode& node);

/// These read an optional member.
double positive_or(const JsonNode& node, std::string_view key, double fallback);
std::vector<JsonNode> list_or_nothing(const JsonNode& root, std::string_view key);

/// Names of nodes and kinds are used in programs and options too, so they are plain words.
std::string read_name(const JsonNode& node);

/// Maps names to indices and remembers their order.
class NameTable {
 public:
  /// `node` is the value that defines the name. Refuses a name that is there already.
  int add(const JsonNode& node, const std::string& name);
  /// Refuses an unknown name; `what` it would be: "device, host or switch".
  int at(const JsonNode& node, std::string_view what) const;
  std::optional<int> find(const std::string& name) const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, int> index_;
  std::vector<std::string> names_;
};

/// The nodes that a pattern such as "gpu0" or "gpu*" names.
std::vector<int> read_ends(const JsonNode& node, const NameTable& nodes);

/// With `driver`, its memory is that of "driver", if there is one, and so is its reserve.
DeviceKind read_kind(const JsonNode& node, bool driver);

/// Refuses a reserve that is larger than the memory.
void check_reserve(const JsonNode& node, std::optional<Bytes> memory, Bytes reserve);

/// "overlap": γ by tier. `what` takes 1 + γ times as long, as the refusal says.
std::array<double, tiers> read_overlap(const JsonNode& node, std::string_view what);

/// "transport" of a link of that tier, where it is there: "rdma" or "tcp" of the network, "peer" or
/// "host" of PCIe. `bandwidth` becomes what it carries.
Transport read_transport(const JsonNode& node, Tier tier, Bandwidth& bandwidth);

/// NICs of one machine.
struct Nics {
  std::string name;          // numbered from 0 where there are several
  int count = 1;             // shared evenly by the devices, or the devices by them
  std::vector<int> devices;  // of the machine
  Bandwidth bandwidth;       // of each, in each direction
  Transport transport = Transport::stated;
  Time latency{};                 // from a device to the switch
  std::optional<Bandwidth> pcie;  // between a device and its NIC; empty: not modelled
  std::optional<int> rail;        // of all; empty: NIC k is on rail k modulo the rails
};

/// What joins machines: NICs, a switch for each rail (and for each group of machines), a spine.
struct Fabric {
  std::vector<Nics> nics;
  std::vector<std::string> rails;
  int leaf_machines = 0;  // machines on one switch of a rail; 0: all
  bool spine = false;
  double oversubscription = 1;  // bandwidth from the machines into a switch, over that to the spine
  Time spine_latency{};         // from a switch to the spine
  std::array<double, tiers> overlap{};
};

/// "network" of a cluster file. `machine` is the cluster of one machine, whose nodes are `nodes`.
Fabric read_fabric(const JsonNode& node, const Cluster& machine, const NameTable& nodes);

/// How often a machine is repeated.
struct Machines {
  int count = 1;
  int domain = 1;            // machines that have the shared switches in common
  std::vector<bool> shared;  // by switch of the machine; of equal length
  std::optional<Fabric> fabric;

  int domains() const { return count / domain; }
};

/// `count` machines as one flat cluster: devices "m3.gpu5", hosts and switches likewise; a shared
/// switch is "d1.nvswitch", or keeps its name where there is one domain. One machine stays as it
/// is. Every machine has a host, "m3.host" where the machine has none. Machines of several domains
/// are joined by the fabric.
Cluster repeated(const Cluster& machine, const Machines& machines);

}  // namespace stageline
