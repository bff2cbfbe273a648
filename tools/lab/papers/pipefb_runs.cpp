// Runs PipeFB and its baseline through the simulator.
#include "tools/lab/papers/pipefb_runs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/index.hpp"
#include "tools/study/study.hpp"

namespace stageline::lab {
namespace {

constexpr int layers = 48;
constexpr std::int64_t stash_of_layer = 1'000'000;  // bytes
constexpr auto forward_of_layer = std::chrono::milliseconds(1);

Model equal_layers() {
  Model model;
  model.name = "equal layers";
  for (int l = 0; l < layers; ++l) {
    Layer layer;
    layer.name = fmt::format("layer{}", l);
    layer.forward = forward_of_layer;
    layer.input_grad = forward_of_layer;
    layer.weight_grad = forward_of_layer;
    layer.backward = 2 * forward_of_layer;
    layer.stash_weight_grad = Bytes{stash_of_layer};
    model.layers.push_back(layer);
  }
  return model;
}

// Each device has its own full-duplex link to the host, whose memory suffices, and a free route to
// the other devices: traffic over the host link other than copies is ignored.
Cluster with_host(int devices, double copy_over_forward) {
  Cluster cluster = uniform_cluster(devices, {}, {});
  if (copy_over_forward == 0) return cluster;
  cluster.hosts.push_back({"host", {}});
  cluster.switches.push_back("fabric");
  const double seconds = to_seconds(forward_of_layer) * copy_over_forward;
  const Bandwidth bandwidth{std::llround(static_cast<double>(stash_of_layer) / seconds)};
  for (int d = 0; d < devices; ++d) {
    nth(cluster.devices, d).host = 0;
    cluster.links.push_back(
        {fmt::format("host link {}", d), d, devices, bandwidth, {}, Duplex::full});
    cluster.links.push_back({fmt::format("link {}", d), d, devices + 1, {}, {}, Duplex::full});
  }
  return cluster;
}

struct Run {
  Time step{};
  Bytes peak{};
};
Run run_of(const std::string& schedule, int devices, double copy_over_forward) {
  Case asked;
  asked.model = equal_layers();
  asked.cluster = with_host(devices, copy_over_forward);
  asked.spec = parse_schedules(schedule).front();
  asked.microbatches = 32;
  const Outcome outcome = study(asked);
  Bytes peak{};
  for (const DeviceMemory& device : outcome.memory.device) peak = std::max(peak, device.peak);
  return {outcome.step_time, peak};
}

}  // namespace

PipefbRun doubled_run(const std::string& transfer, double copy_over_forward) {
  const Run baseline =
      run_of("pipedream:transfer=" + transfer, pipefb_base_nodes, copy_over_forward);
  const Run ours = run_of(fmt::format("pipefb:nodes={0}-{0}", pipefb_base_nodes),
                          2 * pipefb_base_nodes, copy_over_forward);
  return {2 * pipefb_base_nodes, copy_over_forward,
          to_seconds(baseline.step) / to_seconds(ours.step), ours.peak, baseline.peak};
}

std::vector<PipefbRun> pipefb_runs(const std::string& transfer, const std::vector<double>& copies) {
  std::vector<PipefbRun> runs;
  for (const double d : copies) {
    const Run baseline = run_of("pipedream:transfer=" + transfer, pipefb_base_nodes, d);
    for (int nodes = pipefb_base_nodes; nodes <= 2 * pipefb_base_nodes; ++nodes) {
      const Run ours = run_of("pipefb", nodes, d);
      runs.push_back(
          {nodes, d, to_seconds(baseline.step) / to_seconds(ours.step), ours.peak, baseline.peak});
    }
  }
  return runs;
}

}  // namespace stageline::lab
