#include "tools/inputs/device_rates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "cost_models/perturbation/perturbation.hpp"
#include "cost_models/pricing.hpp"
#include "cost_models/spec.hpp"
#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "tools/inputs/clusters.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/study/whatif/slow_devices.hpp"

namespace stageline {
namespace {

double peak_at(const DeviceKind& kind, const std::string& dtype) {
  for (const PeakRate& peak : kind.peak) {
    if (peak.precision == dtype) return peak.flops;
  }
  return 0;
}

// The number format of a priced trace, or that of the peak of its products: as its spelling says,
// else as roofline() takes it.
std::string dtype_of(const std::string& trace, const DeviceKind& kind) {
  for (const auto& [key, value] : parse_spec(trace).options) {
    if (key != "dtype") continue;
    for (const NumberFormat& format : product_formats()) {
      if (format.name == value) return std::string(format.peak_precision());
    }
    return value;
  }
  return peak_at(kind, "bf16") > 0 ? "bf16" : "fp32";
}

// Whether both name the same chip: "NVIDIA H100 80GB HBM3" and "NVIDIA H100 SXM5 80 GB". A chip has
// a word of letters and digits, as memories and sockets have, too, or a number ("RTX 4090").
bool is_named_alike(const std::string& title, const std::string& device) {
  const auto is_chip = [](std::string_view word) {
    for (const std::string_view other : {"HBM", "GDDR", "SXM", "PCIe", "OAM", "NVL"}) {
      if (word.starts_with(other)) return false;
    }
    const bool is_number = word.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number) return word.size() >= 4;
    return std::isalpha(static_cast<unsigned char>(word.front())) != 0 &&
           word.find_first_of("0123456789") != std::string_view::npos;
  };
  const auto words = [](const std::string& text) {
    std::istringstream stream(text);
    return std::set<std::string>(std::istream_iterator<std::string>(stream), {});
  };
  const std::set<std::string> others = words(device);
  for (const std::string& word : words(title)) {
    if (is_chip(word) && others.count(word) > 0) return true;
  }
  return false;
}

}  // namespace

std::vector<Slowdown> parse_slow(const std::string& text, const std::string& what) {
  std::vector<Slowdown> slow;
  for (const std::string& word : split_at_commas(text)) {
    const std::optional<Slow> item = slow_item(word);
    if (!item || !(item->factor >= 0.001 && item->factor <= 1000)) {
      throw UsageError(fmt::format(
          "{} \"{}\": write a device, a machine or links and how many times as long work takes "
          "there, from 0.001 to 1000, like gpu2:1.2 or links:2",
          what, word));
    }
    if (item->probability != 1) {
      throw UsageError(fmt::format(
          "{} \"{}\": a probability makes it a matter of scenarios, which `stageline whatif` draws",
          what, word));
    }
    slow.push_back({item->name, item->factor});
  }
  return slow;
}

UncertainSlow split_slow(const std::string& text, const std::string& what) {
  UncertainSlow split;
  for (const std::string& word : split_at_commas(text)) {
    if (word.find('@') == std::string::npos) {
      split.always += (split.always.empty() ? "" : ",") + word;
    } else {
      for (Slow& item : parse_slow_items(word, what)) split.sometimes.push_back(std::move(item));
    }
  }
  return split;
}

void check_slow(const Cluster& cluster, const std::vector<Slowdown>& slow) {
  for (const Slowdown& item : slow) {
    if (names_links(item.name)) {
      Cluster any = cluster;
      if (slow_links(any, item.name, item.factor)) continue;
      throw UsageError(fmt::format(
          "--slow {}: \"{}\" has no such links; it slows links, nvlink, pcie, network or nic",
          item.name, cluster.name));
    }
    const bool known =
        std::any_of(cluster.devices.begin(), cluster.devices.end(),
                    [&](const Device& device) { return is_called(item.name, cluster, device); });
    if (known) continue;
    std::vector<std::string> all;
    for (const Device& device : cluster.devices) all.push_back(device.name);
    for (const Host& host : cluster.hosts) all.push_back(host.name);
    throw UsageError(fmt::format(
        "--slow {}: no device of the {} in use has that name, nor the machine of one ({} to {}{}){}",
        item.name, cluster.devices.size(), cluster.devices.front().name,
        cluster.devices.back().name,
        cluster.hosts.empty() ? "" : "; machines from " + cluster.hosts.front().name,
        did_you_mean(item.name, all)));
  }
}

Cluster slowed(Cluster cluster, const std::vector<Slowdown>& slow) {
  for (const Slowdown& item : slow) {
    if (names_links(item.name)) slow_links(cluster, item.name, item.factor);
    for (Device& device : cluster.devices) {
      if (!is_called(item.name, cluster, device)) continue;
      slow_down(device, item.factor);
    }
  }
  return cluster;
}

KindRates with_rates_of_kinds(Cluster cluster, const std::string& trace) {
  KindRates result{std::move(cluster), {}};
  const std::string priced_for = priced_device(trace);
  if (priced_for.empty()) return result;
  const std::vector<DeviceKind>& kinds = result.cluster.kinds;
  std::vector<bool> used(kinds.size());
  for (const Device& device : result.cluster.devices) {
    if (device.kind >= 0) used[as_size(device.kind)] = true;
  }
  const auto priced = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const DeviceKind& kind) { return kind.name == priced_for; });
  if (priced == kinds.end() || !used[as_size(priced - kinds.begin())]) return result;
  const std::string dtype = dtype_of(trace, *priced);
  const double peak = peak_at(*priced, dtype);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const DeviceKind& kind = kinds[k];
    if (!used[k] || &kind == &*priced) continue;
    const double own = peak_at(kind, dtype);
    const Bandwidth memory = kind.memory_bandwidth;
    if (!(peak > 0) || !(own > 0) || memory.is_unlimited() ||
        priced->memory_bandwidth.is_unlimited()) {
      result.notes.push_back(fmt::format(
          "devices of kind {} count as fast as {}: the kinds do not both state a {} peak and a "
          "memory bandwidth; give the devices a rate",
          kind.name, priced_for, dtype));
      continue;
    }
    const double rate = own / peak;
    const double memory_rate = static_cast<double>(memory.bytes_per_second) /
                               static_cast<double>(priced->memory_bandwidth.bytes_per_second);
    bool any = false;
    for (Device& device : result.cluster.devices) {
      if (device.kind != static_cast<int>(k) || device.rate != 1 || device.memory_rate != 0) {
        continue;
      }
      device.rate = rate;
      device.memory_rate = memory_rate;
      any = true;
    }
    if (!any) continue;
    result.notes.push_back(fmt::format(
        "devices of kind {} do arithmetic at {:.3g} and memory traffic at {:.3g} of the rate of {}, "
        "for which the trace is priced: the ratios of their {} peaks and memory bandwidths",
        kind.name, rate, memory_rate, priced_for, dtype));
  }
  return result;
}

std::string other_kind_note(const Cluster& cluster, const std::string& device) {
  const std::vector<DeviceKind> known = known_kinds();
  const bool is_known = std::any_of(known.begin(), known.end(),
                                    [&](const DeviceKind& kind) { return kind.title == device; });
  std::vector<std::string> others;
  for (const Device& one : cluster.devices) {
    if (one.kind < 0) continue;
    const DeviceKind& kind = nth(cluster.kinds, one.kind);
    if (kind.title == device || (!is_known && is_named_alike(kind.title, device))) return "";
    if (one.rate != 1 || one.memory_rate != 0) continue;
    const std::string& title = kind.title.empty() ? kind.name : kind.title;
    if (std::find(others.begin(), others.end(), title) == others.end()) others.push_back(title);
  }
  if (others.empty() || device.empty()) return "";
  return fmt::format(
      "the layers' times are those of {}, and the devices are {}, which count as equally fast: "
      "price the model for them, or give the devices a rate",
      device, fmt::join(others, ", "));
}

}  // namespace stageline
