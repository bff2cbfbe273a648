// Adds up the power and the price of all devices over a step.
#include "tools/study/figures/energy.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Null of a device without a kind.
const DeviceKind* kind_of(const Cluster& cluster, const Device& device) {
  return device.kind < 0 ? nullptr : &nth(cluster.kinds, device.kind);
}

bool has_power(const DeviceKind* kind) {
  return kind != nullptr && kind->power_watts > 0 && kind->idle_watts > 0;
}

bool has_price(const DeviceKind* kind) { return kind != nullptr && kind->price_per_hour > 0; }

// By device that is simulated: the devices that do its work.
std::vector<std::vector<int>> members(const Case& asked) {
  std::vector<std::vector<int>> all(asked.cluster.devices.size());
  if (!asked.ranked) {
    for (std::size_t d = 0; d < all.size(); ++d) all[d] = {static_cast<int>(d)};
    return all;
  }
  const RankGrid& grid = asked.ranked->grid();
  const int pipelines = grid.degrees().pipeline;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const int number = static_cast<int>(rank);
    const int data = asked.ranked->replicas() == 1 ? -1 : number / pipelines;
    all[rank] = grid.members(number % pipelines, data);
  }
  return all;
}

std::optional<double> step_joules(const Case& asked, const Outcome& outcome) {
  const Cluster& cluster = asked.all_devices();
  const std::vector<std::vector<int>> behind = members(asked);
  const double step = to_seconds(outcome.step_time);
  double joules = 0;
  for (std::size_t d = 0; d < behind.size(); ++d) {
    const double run = to_seconds(nth(outcome.metrics.device, d).busy);
    const double busy = std::min(step, run / outcome.program.steps);
    for (const int device : behind[d]) {
      const DeviceKind* kind = kind_of(cluster, nth(cluster.devices, device));
      if (!has_power(kind)) return std::nullopt;
      joules += busy * kind->power_watts + (step - busy) * kind->idle_watts;
    }
  }
  return joules;
}

// The first device that lacks something.
const Device* first_without(const Cluster& cluster, bool (*has)(const DeviceKind*)) {
  const auto found =
      std::find_if(cluster.devices.begin(), cluster.devices.end(),
                   [&](const Device& device) { return !has(kind_of(cluster, device)); });
  return found == cluster.devices.end() ? nullptr : &*found;
}

std::string in_words(const Cluster& cluster, const Device& device) {
  const DeviceKind* kind = kind_of(cluster, device);
  return kind == nullptr ? fmt::format("device {} has no kind", device.name)
                         : fmt::format("the kind {} of device {}", kind->name, device.name);
}

// The kinds of the devices, each once.
std::vector<const DeviceKind*> kinds_used(const Cluster& cluster) {
  std::vector<const DeviceKind*> used;
  for (const Device& device : cluster.devices) {
    const DeviceKind* kind = kind_of(cluster, device);
    if (kind != nullptr && std::find(used.begin(), used.end(), kind) == used.end()) {
      used.push_back(kind);
    }
  }
  return used;
}

std::string source_of(const std::string& source) {
  return source.empty() ? "the cluster file names no source" : source;
}

}  // namespace

StepEnergy step_energy(const Case& asked, const Outcome& outcome,
                       std::optional<double> price_per_hour) {
  StepEnergy energy;
  if (outcome.microbatch_size > 0) {
    energy.samples = outcome.samples();
    energy.tokens = energy.samples * static_cast<double>(asked.model.tokens);
  }
  energy.joules = step_joules(asked, outcome);
  if (const auto price = hourly_price(asked, price_per_hour)) {
    energy.dollars = *price * to_seconds(outcome.step_time) / seconds_an_hour;
  }
  return energy;
}

std::optional<double> hourly_price(const Case& asked, std::optional<double> price_per_hour) {
  if (price_per_hour) return *price_per_hour * asked.device_count();
  const Cluster& cluster = asked.all_devices();
  double sum = 0;
  for (const Device& device : cluster.devices) {
    const DeviceKind* kind = kind_of(cluster, device);
    if (!has_price(kind)) return std::nullopt;
    sum += kind->price_per_hour;
  }
  return sum;
}

std::string why_no_energy(const Case& asked) {
  const Cluster& cluster = asked.all_devices();
  const Device* device = first_without(cluster, has_power);
  if (device == nullptr) return "";
  return fmt::format(
      "{}: energy needs the power of every device, busy and idle; take a bundled cluster, such as "
      "h100x8, or state \"power_watts\" and \"idle_watts\" of the kind in a cluster file",
      device->kind < 0 ? in_words(cluster, *device)
                       : in_words(cluster, *device) + " lacks a power");
}

std::string why_no_price(const Case& asked, std::optional<double> price_per_hour) {
  if (price_per_hour) return "";
  const Cluster& cluster = asked.all_devices();
  const Device* device = first_without(cluster, has_price);
  if (device == nullptr) return "";
  return fmt::format(
      "{}: cost needs the price of every device; give --price, or state \"price_per_hour\" of the "
      "kind in a cluster file",
      device->kind < 0 ? in_words(cluster, *device)
                       : in_words(cluster, *device) + " lacks a price");
}

std::vector<std::string> power_notes(const Case& asked) {
  std::vector<std::string> notes;
  for (const DeviceKind* kind : kinds_used(asked.all_devices())) {
    if (!has_power(kind)) continue;
    notes.push_back(fmt::format(
        "energy is a model: {} with {:g} W while its ops run and {:g} W while it waits ({}); hosts, "
        "switches and cooling are not counted",
        kind->name, kind->power_watts, kind->idle_watts, source_of(kind->power_source)));
  }
  return notes;
}

std::vector<std::string> price_notes(const Case& asked, std::optional<double> price_per_hour) {
  if (price_per_hour) {
    return {fmt::format("cost: ${:.2f} an hour and device, as given", *price_per_hour)};
  }
  std::vector<std::string> notes;
  for (const DeviceKind* kind : kinds_used(asked.all_devices())) {
    if (!has_price(kind)) continue;
    notes.push_back(fmt::format("cost: {} at ${:.2f} an hour ({}); --price states another",
                                kind->name, kind->price_per_hour, source_of(kind->price_source)));
  }
  return notes;
}

}  // namespace stageline
