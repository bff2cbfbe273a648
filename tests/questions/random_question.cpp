#include "tests/questions/random_question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"
#include "sim/model.hpp"
#include "tests/specs.hpp"
#include "traces/traces.hpp"

namespace stageline::test {
namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

// Mostly of one size, so that stages are of comparable length; now and then nothing, or far off.
std::string Questions::time() {
  switch (number(12)) {
    case 0:
      return "0ms";
    case 1:
      return fmt::format("{}ps", 1 + number(9));
    case 2:
      return fmt::format("{}s", 1 + number(9));
    default:
      return fmt::format("{}us", 1 + number(3000));
  }
}

std::string Questions::bytes() {
  switch (number(10)) {
    case 0:
      return "0B";
    case 1:
      return fmt::format("{}B", 1 + number(9));
    case 2:
      return fmt::format("{}GB", 1 + number(9));
    default:
      return fmt::format("{}kB", 1 + number(9000));
  }
}

std::string Questions::link() {
  static const std::vector<std::string> bandwidths{"unlimited", "1GB/s",   "12GB/s",    "300MB/s",
                                                   "3MB/s",     "900GB/s", "100Gbit/s", "17kB/s"};
  std::string text = one_of(bandwidths);
  if (!once_in(3)) text += "," + (once_in(4) ? fmt::format("{}ps", number(12)) : time());
  return text;
}

// A chain of unequal layers, now and then with skips, at one batch size.
std::string Questions::trace() {
  if (once_in(12)) {
    return one_of(std::vector<std::string>{"lenet5-cpu", "alexnet-cpu",
                                           "model:resnet20@a100,batch=8",
                                           "model:gpt@a100,layers=2,hidden=64,heads=2,batch=1"});
  }
  if (!once_in(3)) {
    std::string text = fmt::format("uniform:layers={}", 1 + number(12));
    for (const char* const key : {"forward", "input_grad", "weight_grad", "update"}) {
      if (once_in(2)) text += fmt::format(",{}={}", key, time());
    }
    for (const char* const key : {"output", "weights", "stash"}) {
      if (once_in(2)) text += fmt::format(",{}={}", key, bytes());
    }
    if (once_in(2)) text += fmt::format(",batch={}", 1 + number(64));
    return text;
  }
  Model model;
  model.name = "random";
  model.batch = number(5);
  model.provenance.origin = Origin::synthetic;
  model.provenance.method = "drawn at random";
  const int layers = 1 + number(12);
  const auto some_time = [&] {
    return once_in(8) ? Time{} : std::chrono::microseconds(1 + number(4000));
  };
  const auto some_bytes = [&] { return Bytes{once_in(8) ? 0 : 1 + number(4'000'000)}; };
  for (int l = 0; l < layers; ++l) {
    Layer layer;
    layer.name = fmt::format("layer{}", l);
    layer.forward = some_time();
    layer.input_grad = some_time();
    layer.weight_grad = some_time();
    layer.backward = once_in(2) ? layer.input_grad + layer.weight_grad : some_time();
    layer.update = once_in(2) ? Time{} : some_time();
    layer.weights = some_bytes();
    layer.gradients = layer.weights;
    layer.optimizer_state = once_in(2) ? Bytes{} : layer.weights;
    layer.output = some_bytes();
    layer.stash_input_grad = some_bytes();
    layer.stash_weight_grad = some_bytes();
    layer.workspace = some_bytes();
    layer.memory_bound = once_in(3);
    model.layers.push_back(layer);
  }
  if (once_in(4)) {
    for (int to = 1; to < layers; ++to) {
      model.edges.push_back({to - 1, to});
      if (to > 2 && once_in(3)) model.edges.push_back({number(to - 1), to});
    }
    std::sort(model.edges.begin(), model.edges.end());
    model.edges.erase(std::unique(model.edges.begin(), model.edges.end()), model.edges.end());
  }
  const std::string path = folder_ + "/trace.json";
  write(path, write_trace({model}));
  return path;
}

// Devices of unequal rates, by class, on switches; half-duplex and narrow links; a host for
// offloading.
std::string Questions::cluster_file(int devices) {
  Cluster cluster = uniform_cluster(devices, std::nullopt, std::nullopt);
  cluster.name = "random";
  for (Device& device : cluster.devices) {
    if (once_in(2)) device.rate = 0.25 * (1 + number(8));
    if (once_in(3)) device.memory_rate = 0.25 * (1 + number(8));
    if (once_in(2)) device.memory = Bytes{std::int64_t{1 + number(900)} * 1'000'000};
    if (once_in(4)) device.op_overhead = std::chrono::microseconds(number(90));
  }
  if (!once_in(4)) {
    cluster.switches = {"switch0"};
    const int hub = devices + 1;  // behind the host
    cluster.hosts = {{"host0", std::nullopt, true}};
    const auto bandwidth = [&] {
      return Bandwidth{std::int64_t{1 + number(100)} * (once_in(4) ? 1'000'000 : 1'000'000'000)};
    };
    for (int d = 0; d < devices; ++d) {
      const Duplex duplex = once_in(3) ? Duplex::half : Duplex::full;
      cluster.links.push_back({fmt::format("port{}", d), d, hub, bandwidth(),
                               std::chrono::microseconds(number(50)), duplex});
      nth(cluster.devices, d).host = 0;
      cluster.links.push_back({fmt::format("pcie{}", d), d, devices, bandwidth(),
                               std::chrono::microseconds(number(50)), duplex});
    }
  }
  if (once_in(4)) cluster.pair_overlap = 0.25 * number(5);
  const std::string path = folder_ + "/cluster.json";
  write(path, write_cluster(cluster));
  return path;
}

// Machines of one to six devices on a switch each; NICs of a device, of two or of a machine.
std::string Questions::machines_file(int devices) {
  Cluster cluster = uniform_cluster(devices, std::nullopt, std::nullopt);
  cluster.name = "machines";
  if (!once_in(4)) {
    DeviceKind& kind = cluster.kinds.emplace_back();
    for (const DeviceKind& bundled : bundled_kinds()) {
      if (bundled.name == "h100") kind = bundled;
    }
    for (Device& device : cluster.devices) {
      device.kind = 0;
      device.memory = kind.memory;
    }
  }
  std::vector<int> first;  // devices of each machine
  for (int d = 0; d < devices; d += 1 + number(6)) first.push_back(d);
  first.push_back(devices);
  const int machines = static_cast<int>(first.size()) - 1;
  for (int m = 0; m < machines; ++m) {
    cluster.hosts.push_back({fmt::format("host{}", m), std::nullopt, true});
    cluster.switches.push_back(fmt::format("switch{}", m));
  }
  cluster.switches.emplace_back("fabric");
  const int inside = devices + machines;  // the first machine's switch
  const int fabric = inside + machines;
  const int to_a_nic = one_of(std::vector<int>{1, 2, 6});
  const auto join = [&](const std::string& name, int from, int to, int gigabytes, Tier tier) {
    Link link{name, from, to, Bandwidth{std::int64_t{gigabytes} * 1'000'000'000}, Time{}};
    link.tier = tier;
    cluster.links.push_back(link);
  };
  for (int m = 0; m < machines; ++m) {
    for (int d = nth(first, m); d < nth(first, m + 1); ++d) {
      nth(cluster.devices, d).host = m;
      join(fmt::format("nvlink{}", d), d, inside + m, 450, Tier::nvlink);
      if (to_a_nic == 1) join(fmt::format("nic{}", d), d, fabric, 25, Tier::network);
      if (to_a_nic != 2) continue;
      if ((d - nth(first, m)) % 2 == 0) {
        cluster.switches.push_back(fmt::format("nic{}", d));
        const int nic = inside + static_cast<int>(cluster.switches.size()) - 1;
        join(fmt::format("up{}", d), nic, fabric, 25, Tier::network);
      }
      const int nic = inside + static_cast<int>(cluster.switches.size()) - 1;
      join(fmt::format("pcie{}", d), d, nic, 50, Tier::pcie);
    }
    if (to_a_nic == 6) join(fmt::format("nic{}", m), inside + m, fabric, 25, Tier::network);
  }
  const std::string path = folder_ + "/machines.json";
  write(path, write_cluster(cluster));
  return path;
}

std::vector<std::string> Questions::problem_on_machines() {
  const int tensor = one_of(std::vector<int>{1, 2, 3, 4});
  const int context = once_in(4) ? 2 : 1;
  const int data = 1 + number(4);
  const int pipeline = 1 + number(4);
  const int devices = tensor * context * data * pipeline;
  std::vector<std::string> words{
      "model:gpt@h100,layers=6,hidden=768,heads=12,vocab=49152,seq=768,batch=1,dtype=bf16"};
  const auto add = [&](const char* flag, std::string value) {
    words.emplace_back(flag);
    words.push_back(std::move(value));
  };
  add("--schedule", schedule(pipeline, Synchrony::synchronous));
  add("--cluster", machines_file(devices));
  add("--tp", fmt::format("{}", tensor));
  add("--cp", fmt::format("{}", context));
  add("--dp", fmt::format("{}", data));
  add("--pp", fmt::format("{}", pipeline));
  add("--microbatches", fmt::format("{}", pipeline * (1 + number(3))));
  std::vector<std::string> order{"tp", "cp", "dp", "pp"};
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], nth(order, number(static_cast<int>(i))));
  }
  add("--order", fmt::format("{}", fmt::join(order, "-")));
  if (tensor > 1 && once_in(2)) words.emplace_back("--sequence-parallel");
  if (once_in(3)) {
    add("--zero", fmt::format("{}", number(4)));
    if (once_in(2)) add("--zero-every", once_in(2) ? "step" : "microbatch");
    if (once_in(3)) add("--shard-group", fmt::format("{}", data * context / (1 + number(2))));
  }
  if (once_in(3)) add("--sharing", once_in(2) ? "fair" : "fifo");
  if (once_in(4)) {
    add("--collectives",
        one_of(std::vector<std::string>{"ring", "tp=hierarchical", "dp=tree", "tp=nvls,dp=ring"}));
  }
  if (once_in(3)) words.emplace_back("--all-pipelines");
  return words;
}

std::string Questions::schedule(int devices, std::optional<Synchrony> only) {
  std::vector<const Scheduler*> all;
  for (const Scheduler* const one : schedulers()) {
    if (!only || one->synchrony == *only) all.push_back(one);
  }
  const Scheduler& scheduler = *nth(all, number(static_cast<int>(all.size())));
  std::string text(scheduler.name);
  char separator = ':';
  for (const Knob& knob : scheduler.knobs) {
    if (!once_in(2)) continue;
    const std::string value = one_of(values_of(knob, devices));
    if (value.empty() || value.find_first_of(" ,") != std::string::npos) continue;
    text += fmt::format("{}{}={}", separator, knob.name, value);
    separator = ',';
  }
  return text;
}

std::vector<std::string> Questions::problem(std::optional<Synchrony> only) {
  const int devices = 1 + number(6);
  std::vector<std::string> words{trace(), "--schedule", schedule(devices, only)};
  const auto add = [&](const char* flag, std::string value) {
    words.emplace_back(flag);
    words.push_back(std::move(value));
  };
  add("--microbatches", fmt::format("{}", 1 + number(9)));
  const int kind = number(8);
  if (kind == 0) {
    add("--cluster", cluster_file(devices));
  } else if (kind == 1) {
    add("--cluster", one_of(std::vector<std::string>{"h100x8", "v100x4-pcie", "a100x8"}));
  }
  add("--devices", fmt::format("{}", devices));
  if (kind > 1) {
    if (!once_in(3)) add("--link", link());
    if (once_in(3)) add("--memory", bytes());
    if (once_in(4)) add("--host-link", link());
    if (once_in(6)) add("--host-memory", bytes());
  }
  if (once_in(8)) add("--slow", fmt::format("gpu{}:{}", number(devices), 0.5 * (1 + number(6))));
  if (devices < 5 && once_in(30)) add("--device-order", "search");
  if (once_in(8)) add("--pair-overlap", fmt::format("0.{}", number(10)));
  if (once_in(4)) add("--steps", fmt::format("{}", 1 + number(5)));
  if (once_in(6)) add("--microbatch-size", fmt::format("{}", 1 + number(16)));
  if (once_in(3)) {
    add("--partition",
        one_of(std::vector<std::string>{"uniform", "pipedream", "by_device", "balanced"}));
  }
  if (once_in(8)) {
    add("--recompute", one_of(std::vector<std::string>{"full", "every:1", "every:2", "full@0-",
                                                       "selective", "every:1,full@0", "layers:0-",
                                                       "full@layers:1-,none@0", "none"}));
    if (once_in(3)) add("--recompute-start", once_in(2) ? "late" : "early");
  }
  if (once_in(8)) {
    add("--offload", once_in(2) ? "all" : "@0");
    if (once_in(3)) add("--prefetch", fmt::format("{}", 1 + number(4)));
  }
  if (once_in(8)) {
    add("--weights", one_of(std::vector<std::string>{"flush", "stash", "vertical_sync",
                                                     "double_buffer", "latest"}));
  }
  return words;
}

std::vector<std::string> Questions::replicated_problem(std::vector<std::string> problem) {
  const int replicas = 1 + number(3);
  const auto devices = std::find(problem.begin(), problem.end(), "--devices") + 1;
  *devices = fmt::format("{}", replicas * std::stoi(*devices));
  const auto add = [&](const char* flag, std::string value) {
    problem.emplace_back(flag);
    problem.push_back(std::move(value));
  };
  add("--dp", fmt::format("{}", replicas));
  if (once_in(2)) add("--order", once_in(2) ? "tp-cp-pp-ep-dp" : "dp-tp-cp-pp");
  if (once_in(2)) {
    add("--zero", fmt::format("{}", number(4)));
    if (once_in(2)) add("--zero-every", once_in(2) ? "step" : "microbatch");
    if (once_in(4)) add("--shard-group", "1");
  }
  if (once_in(3)) add("--sharing", once_in(2) ? "fair" : "fifo");
  if (once_in(3)) add("--buckets", one_of(std::vector<std::string>{"ddp", "megatron", "none"}));
  if (once_in(3)) problem.emplace_back("--all-pipelines");
  return problem;
}

}  // namespace stageline::test
