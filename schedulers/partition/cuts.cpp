#include "schedulers/partition/cuts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedulers/partition/device_loads.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

int layer_count(const PartitionRequest& request) {
  return static_cast<int>(request.model.layers.size());
}

}  // namespace

void check_stages(const PartitionRequest& request) {
  const int layers = layer_count(request);
  if (request.stages >= 1 && request.stages <= layers) return;
  throw UsageError(
      request.stages < 1
          ? fmt::format("a partition needs at least 1 stage ({} were asked for)", request.stages)
          : fmt::format("{} stages need at least {} layers, but the model \"{}\" has {}; use fewer "
                        "devices or a finer trace",
                        request.stages, request.stages, request.model.name, layers));
}

void check_replicas(const PartitionRequest& request) {
  if (request.replicas.empty()) return;
  const std::string text = fmt::format("{}", fmt::join(request.replicas, "-"));
  const std::size_t devices = request.cluster.devices.size();
  std::int64_t sum = 0;
  for (const int count : request.replicas) {
    if (count < 1) {
      throw UsageError(
          fmt::format("replicas {}: each stage needs at least 1 device, not {}", text, count));
    }
    sum += count;
  }
  if (static_cast<std::int64_t>(request.replicas.size()) != request.stages) {
    throw UsageError(
        fmt::format("replicas {} are for {} stage{}, but {} to be made; give one number a stage",
                    text, request.replicas.size(), request.replicas.size() == 1 ? "" : "s",
                    request.stages == 1 ? "1 is" : fmt::format("{} are", request.stages)));
  }
  if (sum != static_cast<std::int64_t>(devices)) {
    throw UsageError(
        fmt::format("replicas {} are {} device{}, but there {} {}; their sum must be the same",
                    text, sum, sum == 1 ? "" : "s", devices == 1 ? "is" : "are", devices));
  }
}

PartitionPlan plan_from_cuts(const PartitionRequest& request, const std::vector<int>& last_layers,
                             std::string reason) {
  return {partition_from_cuts(last_layers, layer_count(request)),
          request.replicas.empty() ? std::vector<int>(last_layers.size() + 1, 1) : request.replicas,
          {},
          std::move(reason)};
}

std::vector<int> last_layers_of(const Partition& partition) {
  std::vector<int> last_layers;
  for (std::size_t layer = 1; layer < partition.stage_of.size(); ++layer) {
    if (partition.stage_of[layer] == partition.stage_of[layer - 1]) continue;
    last_layers.push_back(static_cast<int>(layer) - 1);
  }
  return last_layers;
}

std::vector<int> devices_of_stage(const PartitionRequest& request, int stage) {
  const int devices = static_cast<int>(request.cluster.devices.size());
  if (request.replicas.empty()) {
    const auto at = as_size(stage);
    if (at < request.placed.size() && !request.placed[at].empty()) return request.placed[at];
    return {stage % std::max(devices, 1)};
  }
  const auto own = request.replicas.begin() + stage;
  std::vector<int> all(as_size(*own));
  std::iota(all.begin(), all.end(), std::accumulate(request.replicas.begin(), own, 0));
  return all;
}

StageSpeed speed_of_stage(const PartitionRequest& request, int stage) {
  StageSpeed speed;
  const auto at = as_size(stage);
  speed.apart = at < request.apart.size() && request.apart[at];
  const std::vector<Device>& devices = request.cluster.devices;
  if (devices.empty()) return speed;
  const std::vector<int> own = devices_of_stage(request, stage);
  const double turns = request.replicas.empty() ? 1 : static_cast<double>(own.size());
  speed.rates.clear();
  for (const int device : own) {
    Rates rates = rates_of(devices[as_size(device) % devices.size()]);
    rates.matrix *= turns;
    rates.memory *= turns;
    if (std::find(speed.rates.begin(), speed.rates.end(), rates) == speed.rates.end()) {
      speed.rates.push_back(rates);
    }
  }
  return speed;
}

ClassTimes forward_times(const Layer& layer) {
  return {layer.forward, layer.memory_bound ? layer.forward : Time{}};
}

ClassTimes backward_times(const Layer& layer) {
  return {layer.backward, layer.memory_bound ? layer.backward : Time{}};
}

Time stage_time(ClassTimes forward, ClassTimes backward, const StageSpeed& speed) {
  Time slowest{};
  for (const Rates rates : speed.rates) {
    if (speed.apart) {
      slowest = std::max({slowest, at_rates(forward, rates), at_rates(backward, rates)});
    } else {
      ClassTimes both = forward;
      both += backward;
      slowest = std::max(slowest, at_rates(both, rates));
    }
  }
  return slowest;
}

Time on_device(Time time, double rate) {
  if (rate == 1) return time;
  return Time{std::llround(static_cast<double>(time.count()) / rate)};
}

std::string balance_of(const PartitionRequest& request, const Partition& partition) {
  std::vector<ClassTimes> forward(as_size(partition.stages));
  std::vector<ClassTimes> backward(forward.size());
  for (std::size_t layer = 0; layer < partition.stage_of.size(); ++layer) {
    const Layer& costs = request.model.layers[layer];
    const auto stage = as_size(partition.stage_of[layer]);
    forward[stage] += forward_times(costs);
    backward[stage] += backward_times(costs);
  }
  Time largest{};
  double sum = 0;
  for (int stage = 0; stage < partition.stages; ++stage) {
    const auto at = as_size(stage);
    const Time here = stage_time(forward[at], backward[at], speed_of_stage(request, stage));
    largest = std::max(largest, here);
    sum += static_cast<double>(here.count());
  }
  Bytes moved;
  for (const StageFlow& flow : stage_flows(partition, request.model)) moved += flow.bytes;
  const std::string moves =
      request.model.bytes_known ? print(moved) : std::string("an unknown number of bytes");
  if (holds_several(request)) {
    const std::vector<double> loads = device_loads(request, last_layers_of(partition));
    const double busiest = *std::max_element(loads.begin(), loads.end());
    const double mean =
        std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(loads.size());
    return fmt::format(
        "busiest device {} in {} stages, {:.1f} % over the mean; {} a micro-batch between stages",
        print(Time{std::llround(busiest)}), partition.stages,
        mean == 0 ? 0 : 100 * (busiest / mean - 1), moves);
  }
  const double over =
      sum == 0 ? 0 : 100 * (static_cast<double>(largest.count()) * partition.stages / sum - 1);
  return fmt::format("largest stage {}{}, {:.1f} % over the mean; {} a micro-batch between stages",
                     print(largest), request.replicas.empty() ? "" : " a micro-batch", over, moves);
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> items;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    items.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return items;
}

}  // namespace stageline
