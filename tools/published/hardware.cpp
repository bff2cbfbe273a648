// Reads hardware and network as they are printed.
#include "tools/published/hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cost_models/network/allocation.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/json.hpp"

namespace stageline {
namespace {

constexpr int most_gpus = 65536;  // of a cluster

// A kind of device, the bundled machine with it, and that machine's links.
struct KnownDevice {
  std::string_view kind;
  std::string_view machine;   // empty: none is bundled
  int devices = 8;            // of a machine
  double network_gbit = 0;    // of each device's NICs, in the bundled machine
  std::string_view nvlink;    // each way
  std::string_view pcie;      // each way
  std::string_view own_kind;  // as JSON; empty: the kind is bundled
};

// The H100 of torchtitan's Grand Teton: https://github.com/pytorch/torchtitan/blob/main/benchmarks/
// asyncTP_llama3_h100_2025-06_torchtitan.md. Its 500 W hold a lower clock than the SXM5's 700 W:
// with 100 W of either at rest, and the rest as the cube of the clock, 0.874 of it, and so of the
// data sheet's peaks. Nobody measured it.
constexpr std::string_view h100_96gb =
    R"({"name": "h100-96gb", "title": "NVIDIA H100 96 GB, 500 W", "memory": "96GB", )"
    R"("memory_bandwidth": "2.4TB/s", "peak": {"fp32": 58.6e12, "tf32": 432.4e12, "bf16": 864.7e12, )"
    R"("fp16": 864.7e12, "fp8": 1729.6e12}, "power_watts": 500, "source": "torchtitan, benchmarks; peaks 0.874 of an H100 SXM5's, by its power"})";

// V100 of runs of several machines are on SXM2 boards with NVLink 2, 150 GB/s each way: NVIDIA V100
// data sheet. The bundled v100 is a PCIe card.
constexpr std::string_view v100_sxm =
    R"({"name": "v100-sxm", "title": "NVIDIA V100 SXM2 32 GB", "memory": "32GB", )"
    R"("memory_bandwidth": "900GB/s", "peak": {"fp32": 15.7e12, "fp16": 125e12}, )"
    R"("source": "NVIDIA V100 data sheet"})";

constexpr std::array<KnownDevice, 16> known_devices{{
    {"v100-sxm", "", 8, 100, "150GB/s", "15.75GB/s", v100_sxm},
    {"a100", "a100x8", 8, 200, "300GB/s", "31.5GB/s", ""},
    {"a100-40gb", "p4d", 8, 50, "300GB/s", "31.5GB/s", ""},
    {"a800", "a800x8", 8, 200, "200GB/s", "31.5GB/s", ""},
    {"h100", "h100x8", 8, 400, "450GB/s", "63GB/s", ""},
    {"h100-96gb", "", 8, 0, "450GB/s", "63GB/s", h100_96gb},
    {"h800", "h800x8", 8, 400, "200GB/s", "63GB/s", ""},
    {"h20", "h20x8", 8, 400, "450GB/s", "63GB/s", ""},
    {"h200", "h200x8", 8, 400, "450GB/s", "63GB/s", ""},
    {"b200", "b200x8", 8, 400, "900GB/s", "63GB/s", ""},
    {"gb200", "gb200x72", 72, 400, "", "", ""},
    {"b300", "b300x8", 8, 800, "900GB/s", "126GB/s", ""},
    {"gb300", "gb300x72", 72, 800, "", "", ""},
    {"mi300x", "mi300x8", 8, 400, "448GB/s", "63GB/s", ""},
    {"mi325x", "mi325x8", 8, 400, "448GB/s", "63GB/s", ""},
    {"mi355x", "mi355x8", 8, 400, "537GB/s", "63GB/s", ""},
}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

// Racks of so many devices, four a machine, that a job gets equal shares of.
int racks_of(int gpus, int rack) {
  constexpr int in_machine = 4;
  if (gpus <= rack || gpus % in_machine != 0) return (gpus + rack - 1) / rack;
  const int machines = gpus / in_machine;
  return machines / machines_of_a_rack(machines, rack / in_machine);
}

bool is_figure_digit(char character) {
  return std::isdigit(static_cast<unsigned char>(character)) != 0;
}

bool is_letter_or_digit(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0;
}

// Whether the text names the chip: "h20" stands in "8xH20 96GB" and "H20SXM", not in "H200" or
// "GH20".
bool names_chip(const std::string& text, std::string_view chip) {
  for (std::size_t at = text.find(chip); at != std::string::npos; at = text.find(chip, at + 1)) {
    const std::size_t end = at + chip.size();
    const bool counted = at >= 2 && text[at - 1] == 'x' && is_figure_digit(text[at - 2]);
    const bool begins = at == 0 || !is_letter_or_digit(text[at - 1]) || counted;
    if (begins && (end == text.size() || !is_figure_digit(text[end]))) return true;
  }
  return false;
}

std::string_view kind_of(const std::string& hardware) {
  const std::string words = lower(hardware);
  // The bundled machines have boards with NVSwitch; cards are slower, and joined otherwise.
  const bool card = has(words, "pcie") || has(words, " nvl");
  for (const std::string_view chip : {"v100", "a100", "h100", "h200"}) {
    if (card && names_chip(words, chip)) return "";
  }
  if (names_chip(words, "v100")) return "v100-sxm";
  if (names_chip(words, "h100")) return has(words, "96gb") ? "h100-96gb" : "h100";
  if (names_chip(words, "a100")) return has(words, "40gb") ? "a100-40gb" : "a100";
  for (const KnownDevice& device : known_devices) {
    if (names_chip(words, device.kind)) return device.kind;
  }
  return "";
}

struct PrintedNics {
  int count = 8;      // of a machine
  double gbit = 200;  // of each
};

// The number right before `unit`.
std::optional<double> number_before(const std::string& text, std::string_view unit) {
  const std::size_t end = text.find(unit);
  if (end == std::string::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 ||
                       text[begin - 1] == '.')) {
    --begin;
  }
  return parse_number<double>(std::string_view(text).substr(begin, end - begin));
}

// Empty: no rate is printed.
std::optional<PrintedNics> nics_of(const Point& point) {
  const std::optional<double> gbit = number_before(point.network, " Gb/s");
  if (!gbit || !(*gbit > 0)) return std::nullopt;
  if (has(lower(point.network), "per gpu")) return PrintedNics{point.gpus_per_node, *gbit};
  if (const auto count = number_before(point.network, "x "); count && *count >= 1) {
    return PrintedNics{static_cast<int>(*count), *gbit};
  }
  return PrintedNics{point.gpus_per_node, *gbit / point.gpus_per_node};
}

std::string network_json(const PrintedNics& nics, const KnownDevice& device) {
  const bool shared = nics.count < device.devices;
  return fmt::format(
      R"("network": {{"nics": [{{"name": "nic", "count": {}, "devices": "gpu*", )"
      R"("bandwidth": "{:g}Gbit/s", "latency": "2us"{}}}], "rails": {}, )"
      R"("spine": {{"latency": "0.5us"}}, "overlap": {{"nvlink": 0.1, "network": 0.05}}}})",
      nics.count, nics.gbit, shared ? fmt::format(R"(, "pcie": "{}")", device.pcie) : "",
      nics.count);
}

std::string cluster_json(const Point& point, const KnownDevice& device, const PrintedNics& nics,
                         int machines, const RunPace& pace) {
  const auto picoseconds = static_cast<std::int64_t>(std::llround(pace.op_cost * 1e12));
  std::string paced = picoseconds > 0 ? fmt::format(R"(, "op_overhead": "{}ps")", picoseconds) : "";
  if (pace.rate != 1) paced += fmt::format(R"(, "rate": {:.9g})", pace.rate);
  std::string text =
      fmt::format(R"({{"format": "stageline-cluster 1", "name": "{}x{}", )"
                  R"("source": {}, )",
                  device.kind, point.gpus_per_node,
                  json_string("The machine of a published run; network as printed: " +
                              (point.network.empty() ? "nothing" : point.network)));
  if (!device.own_kind.empty()) text += fmt::format(R"("kinds": [{}], )", device.own_kind);
  text += fmt::format(
      R"("devices": [{{"name": "gpu", "count": {}, "kind": "{}", "host": "host0"{}}}], )"
      R"("hosts": [{{"name": "host0", "memory": "2TB"}}], "switches": ["nvswitch"], )"
      R"("links": [{{"from": "gpu*", "to": "nvswitch", "bandwidth": "{}", "latency": "1us", )"
      R"("tier": "nvlink"}}, {{"from": "gpu*", "to": "host0", "bandwidth": "{}", )"
      R"("latency": "1.5us", "tier": "pcie"}}], {}{}}})",
      point.gpus_per_node, device.kind, paced, device.nvlink, device.pcie,
      machines > 1 ? fmt::format(R"("machines": {}, )", machines) : "", network_json(nics, device));
  return text;
}

}  // namespace

PointHardware hardware_of(const Point& point, const RunPace& pace) {
  PointHardware found;
  const std::string_view kind = kind_of(point.hardware);
  const auto known =
      std::find_if(known_devices.begin(), known_devices.end(),
                   [kind](const KnownDevice& device) { return device.kind == kind; });
  if (known == known_devices.end()) {
    found.why_not = fmt::format("no bundled cluster has the device \"{}\"", point.hardware);
    return found;
  }
  if (point.gpus > most_gpus) {
    found.why_not =
        fmt::format("{} devices are more than the {} of a cluster", point.gpus, most_gpus);
    return found;
  }
  found.kind = known->kind;
  const std::optional<PrintedNics> printed = nics_of(point);
  const bool one_machine = point.gpus <= point.gpus_per_node;
  const double usual = known->network_gbit > 0 ? known->network_gbit : 400;
  if (!printed && !one_machine) {
    found.assumptions.push_back(
        fmt::format("the network's rate is not printed: {:g} Gb/s a device", usual));
  }
  const double each = printed ? printed->gbit * printed->count / point.gpus_per_node : usual;
  const int machines = (point.gpus + point.gpus_per_node - 1) / point.gpus_per_node;
  const bool as_bundled = !known->machine.empty() && pace == RunPace{} &&
                          point.gpus_per_node == std::min(known->devices, 8) &&
                          (one_machine || std::abs(each - known->network_gbit) < 1e-9);
  if (as_bundled) {
    found.cluster =
        machines > 1 ? fmt::format("{}*{}", known->machine, machines) : std::string(known->machine);
    return found;
  }
  if (known->nvlink.empty()) {
    const int domains = racks_of(point.gpus, known->devices);
    if (domains > 1 && point.gpus % domains == 0) {
      found.assumptions.push_back(
          fmt::format("{} devices of each of {} racks, as schedulers of jobs place them",
                      point.gpus / domains, domains));
    }
    found.cluster =
        domains > 1 ? fmt::format("{}*{}", known->machine, domains) : std::string(known->machine);
    return found;
  }
  found.cluster = cluster_json(
      point, *known, printed.value_or(PrintedNics{point.gpus_per_node, usual}), machines, pace);
  return found;
}

}  // namespace stageline
