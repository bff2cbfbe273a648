#include "tests/trial/machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/cluster.hpp"
#include "traces/traces.hpp"

namespace stageline::trial {
namespace {

using test::Questions;

struct Layout {
  std::string kind;
  std::vector<int> sizes;   // devices of each machine
  int to_a_nic = 1;         // devices that share a NIC; 0: all of a machine
  int nic_gigabytes = 25;   // of bandwidth each second
  int own_gigabytes = 450;  // the same inside a machine
  int latency_ns = 0;

  std::string file() const {
    std::string text = kind + "-";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : "+", sizes[i]);
    }
    return fmt::format("{}-nic{}-{}GBs-{}ns.json", text, to_a_nic, nic_gigabytes, latency_ns);
  }
};

Layout draw_layout(Questions& draw, int devices, const std::string& kind) {
  Layout layout;
  layout.kind = kind;
  const int most = 1 + draw.number(8);
  for (int left = devices; left > 0;) {
    const int size = std::min(left, draw.once_in(3) ? 1 + draw.number(8) : most);
    layout.sizes.push_back(size);
    left -= size;
  }
  layout.to_a_nic = draw.one_of(std::vector<int>{0, 1, 1, 2});
  layout.nic_gigabytes = draw.one_of(std::vector<int>{1, 12, 25, 50});
  layout.latency_ns = draw.one_of(std::vector<int>{0, 2000, 5000});
  return layout;
}

// Nodes are the devices, the hosts, then the switches: one inside each machine, the fabric, NICs.
class Builder {
 public:
  explicit Builder(const Layout& layout) : layout_(layout) {}

  Cluster build() {
    int devices = 0;
    for (const int size : layout_.sizes) devices += size;
    cluster_ = uniform_cluster(devices, std::nullopt, std::nullopt);
    cluster_.name = "machines";
    devices_ = devices;
    give_kind();
    const auto machines = static_cast<int>(layout_.sizes.size());
    for (int m = 0; m < machines; ++m) {
      cluster_.hosts.push_back({fmt::format("host{}", m), std::nullopt, true});
      cluster_.switches.push_back(fmt::format("switch{}", m));
    }
    cluster_.switches.emplace_back("fabric");
    int first = 0;
    for (int m = 0; m < machines; ++m) {
      join_machine(m, first, nth(layout_.sizes, m));
      first += nth(layout_.sizes, m);
    }
    return cluster_;
  }

 private:
  Layout layout_;
  Cluster cluster_;
  int devices_ = 0;

  void give_kind() {
    for (const DeviceKind& bundled : bundled_kinds()) {
      if (bundled.name == layout_.kind) cluster_.kinds.push_back(bundled);
    }
    if (cluster_.kinds.empty()) return;
    for (Device& device : cluster_.devices) {
      device.kind = 0;
      device.memory = cluster_.kinds.front().memory;
      device.reserve = cluster_.kinds.front().reserve;
    }
  }

  int switch_node(int index) const {
    return devices_ + static_cast<int>(layout_.sizes.size()) + index;
  }

  void join(const std::string& name, int from, int to, int gigabytes, Tier tier) {
    Link link{name, from, to, Bandwidth{std::int64_t{gigabytes} * 1'000'000'000}, Time{}};
    if (tier == Tier::network) link.latency = std::chrono::nanoseconds(layout_.latency_ns);
    link.tier = tier;
    cluster_.links.push_back(link);
  }

  void join_machine(int machine, int first, int size) {
    const int fabric = switch_node(static_cast<int>(layout_.sizes.size()));
    const int inside = switch_node(machine);
    int nic = -1;
    for (int d = first; d < first + size; ++d) {
      nth(cluster_.devices, d).host = machine;
      join(fmt::format("nvlink{}", d), d, inside, layout_.own_gigabytes, Tier::nvlink);
      join(fmt::format("host{}", d), d, devices_ + machine, 50, Tier::pcie);
      if (layout_.to_a_nic == 1) {
        join(fmt::format("nic{}", d), d, fabric, layout_.nic_gigabytes, Tier::network);
      }
      if (layout_.to_a_nic != 2) continue;
      if ((d - first) % 2 == 0) {
        cluster_.switches.push_back(fmt::format("nic{}", d));
        nic = switch_node(static_cast<int>(cluster_.switches.size()) - 1);
        join(fmt::format("up{}", d), nic, fabric, layout_.nic_gigabytes, Tier::network);
      }
      join(fmt::format("pcie{}", d), d, nic, 50, Tier::pcie);
    }
    if (layout_.to_a_nic == 0) {
      join(fmt::format("nic{}", machine), inside, fabric, layout_.nic_gigabytes, Tier::network);
    }
  }
};

void write_once(const std::string& path, const std::string& text) {
  if (std::filesystem::exists(path)) return;
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

std::string machines(Questions& draw, int devices, const std::string& kind) {
  if (draw.once_in(4) && (kind == "h100" || kind == "a100" || kind == "b200")) {
    return fmt::format("{}x8*{}", kind, (devices + 7) / 8 + (draw.once_in(4) ? 1 : 0));
  }
  const Layout layout = draw_layout(draw, devices, kind);
  const std::string path = draw.folder() + "/" + layout.file();
  write_once(path, write_cluster(Builder(layout).build()));
  return path;
}

std::string renamed(const std::string& cluster, const std::string& folder) {
  if (!cluster.ends_with(".json")) return "";
  std::ifstream file(cluster, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  Cluster other = read_cluster(text.str(), cluster);
  const auto name = [](const char* what, std::size_t i) { return fmt::format("{}_{}", what, i); };
  for (std::size_t i = 0; i < other.devices.size(); ++i) other.devices[i].name = name("dev", i);
  for (std::size_t i = 0; i < other.hosts.size(); ++i) other.hosts[i].name = name("box", i);
  for (std::size_t i = 0; i < other.switches.size(); ++i) other.switches[i] = name("hub", i);
  for (std::size_t i = 0; i < other.links.size(); ++i) other.links[i].name = name("cable", i);
  const std::string path =
      folder + "/renamed-" + std::filesystem::path(cluster).filename().string();
  write_once(path, write_cluster(other));
  return path;
}

}  // namespace stageline::trial
