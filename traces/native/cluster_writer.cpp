// Writes cluster files, which traces/README.md describes: every device and link separately, also
// those of several machines, numbers exactly, defaults left out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/transport.hpp"
#include "traces/json/parts.hpp"
#include "traces/native/measured_collectives.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

// The members of an object; those without a value are left out.
class Members {
 public:
  void text(std::string_view key, const std::string& value) {
    if (!value.empty()) add(key, json_text(value));
  }
  void size(std::string_view key, std::optional<Bytes> value) {
    if (value) add(key, fmt::format("{}", value->count));
  }
  void reserve(Bytes value, Bytes left_out) {
    if (value != left_out) add("reserve", fmt::format("\"{}B\"", value.count));
  }
  void bandwidth(std::string_view key, Bandwidth value) {
    add(key,
        value.is_unlimited() ? "\"unlimited\"" : fmt::format("\"{}B/s\"", value.bytes_per_second));
  }
  void number(std::string_view key, double value, double left_out) {
    if (value != left_out) add(key, fmt::format("{}", value));
  }
  void add(std::string_view key, std::string_view json) {
    members_ += fmt::format("{}\"{}\": {}", members_.empty() ? "" : ", ", key, json);
  }
  std::string object() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

std::string kind_text(const DeviceKind& kind) {
  Members members;
  members.text("name", kind.name);
  members.text("title", kind.title);
  members.size("memory", kind.memory);
  members.reserve(kind.reserve, Bytes{});
  if (!kind.memory_bandwidth.is_unlimited()) {
    members.bandwidth("memory_bandwidth", kind.memory_bandwidth);
  }
  if (!kind.peak.empty()) {
    Members peak;
    for (const PeakRate& rate : kind.peak) peak.number(rate.precision, rate.flops, 0);
    members.add("peak", peak.object());
  }
  members.number("power_watts", kind.power_watts, 0);
  members.number("idle_watts", kind.idle_watts, 0);
  members.text("power_source", kind.power_source);
  members.number("price_per_hour", kind.price_per_hour, 0);
  members.text("price_source", kind.price_source);
  members.text("source", kind.source);
  return members.object();
}

std::string device_text(const Device& device, const Cluster& cluster) {
  Members members;
  members.text("name", device.name);
  std::optional<Bytes> usual;
  Bytes usual_reserve{};
  if (device.kind >= 0) {
    const DeviceKind& kind = nth(cluster.kinds, device.kind);
    members.text("kind", kind.name);
    usual = kind.memory;
    usual_reserve = kind.reserve;
  }
  members.number("rate", device.rate, 1);
  members.number("memory_rate", device.memory_rate, 0);
  if (device.memory != usual) members.size("memory", device.memory);
  members.reserve(device.reserve, usual_reserve);
  if (device.host >= 0) {
    members.text("host", nth(cluster.hosts, device.host).name);
  }
  if (device.op_overhead != Time{}) {
    members.add("op_overhead", fmt::format("\"{}ps\"", device.op_overhead.count()));
  }
  return members.object();
}

std::string host_text(const Host& host) {
  Members members;
  members.text("name", host.name);
  members.size("memory", host.memory);
  return members.object();
}

std::string node_name(const Cluster& cluster, int node) {
  auto at = as_size(node);
  if (at < cluster.devices.size()) return cluster.devices[at].name;
  at -= cluster.devices.size();
  if (at < cluster.hosts.size()) return cluster.hosts[at].name;
  return cluster.switches.at(at - cluster.hosts.size());
}

std::string link_text(const Link& link, const Cluster& cluster) {
  const std::string from = node_name(cluster, link.from);
  const std::string to = node_name(cluster, link.to);
  Members members;
  members.text("from", from);
  members.text("to", to);
  members.bandwidth("bandwidth", link.bandwidth);
  if (link.latency != Time{}) {
    members.add("latency", fmt::format("\"{}ps\"", link.latency.count()));
  }
  if (link.latency_back) {
    members.add("latency_back", fmt::format("\"{}ps\"", link.latency_back->count()));
  }
  if (link.duplex == Duplex::half) members.add("duplex", "\"half\"");
  if (link.tier != Tier::other) members.text("tier", std::string(name(link.tier)));
  if (link.transport != Transport::stated) {
    members.text("transport", std::string(name(link.transport)));
  }
  if (link.name != from + "-" + to) members.text("name", link.name);
  return members.object();
}

// "key": γ by tier, where it is above 0.
std::string overlap_text(std::string_view key, const std::array<double, tiers>& slowdown) {
  Members overlap;
  for (const Tier tier : all_tiers) overlap.number(name(tier), slowdown[as_size(tier)], 0);
  return fmt::format(",\n  \"{}\": {}", key, overlap.object());
}

// "key": the list of `text` of each item, one item a line; nothing for an empty list.
template <class Item, class Text>
std::string list_text(std::string_view key, const std::vector<Item>& items, Text text) {
  if (items.empty()) return {};
  std::string list;
  for (const Item& item : items) list += (list.empty() ? "\n    " : ",\n    ") + text(item);
  return fmt::format(",\n  \"{}\": [{}\n  ]", key, list);
}

}  // namespace

std::string write_cluster(const Cluster& cluster) {
  std::string text =
      "{\n  \"format\": \"stageline-cluster 1\",\n  \"name\": " + json_text(cluster.name);
  if (!cluster.source.empty()) text += ",\n  \"source\": " + json_text(cluster.source);
  text += list_text("kinds", cluster.kinds, kind_text);
  text += list_text("devices", cluster.devices,
                    [&](const Device& device) { return device_text(device, cluster); });
  text += list_text("hosts", cluster.hosts, host_text);
  text += list_text("switches", cluster.switches, json_text);
  text +=
      list_text("links", cluster.links, [&](const Link& link) { return link_text(link, cluster); });
  constexpr std::array<double, tiers> nothing{};
  if (cluster.overlap_slowdown != nothing) {
    text += overlap_text("overlap", cluster.overlap_slowdown);
  }
  if (cluster.message_slowdown) text += overlap_text("overlap_messages", *cluster.message_slowdown);
  if (cluster.transfer_slowdown != nothing) {
    text += overlap_text("overlap_transfers", cluster.transfer_slowdown);
  }
  if (cluster.pair_overlap) {
    text += fmt::format(",\n  \"pair_overlap\": {}", *cluster.pair_overlap);
  }
  if (!cluster.interference.empty()) {
    text += fmt::format(",\n  \"interference\": [{}]", fmt::join(cluster.interference, ", "));
  }
  if (!cluster.handover.is_free()) {
    Members handover;
    handover.bandwidth("write", cluster.handover.write);
    handover.bandwidth("read", cluster.handover.read);
    text += ",\n  \"handover\": " + handover.object();
  }
  if (cluster.racks.machines > 0) {
    text += fmt::format(",\n  \"racks\": {{\"devices\": {}, \"machines\": {}}}",
                        cluster.racks.devices, cluster.racks.machines);
  }
  text += list_text("collectives", measured_collective_texts(cluster.collectives),
                    [](const std::string& one) { return one; });
  text += "\n}\n";
  Cluster read = read_cluster(text, "the cluster as written");
  read.allocation = cluster.allocation;  // of a job, not of the cluster
  if (read != cluster) {
    throw UsageError(fmt::format(
        "the cluster \"{}\" cannot be written: the format cannot express a host that relays "
        "nothing, or a device of unknown memory whose kind has a memory",
        cluster.name));
  }
  return text;
}

}  // namespace stageline
