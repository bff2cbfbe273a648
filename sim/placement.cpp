// Placements and partitions: construction, checks, stage edges.
#include "sim/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/stash_readers.hpp"

namespace stageline {

Placement straight_placement(int stages) {
  return replicated_placement(std::vector<int>(as_size(stages), 1));
}

Placement replicated_placement(const std::vector<int>& replicas) {
  Placement placement;
  int device = 0;
  for (const int count : replicas) {
    StagePlace place;
    for (int i = 0; i < count; ++i) place.replicas.push_back(device++);
    placement.stage.push_back(place);
  }
  return placement;
}

int device_of(const Placement& placement, Op op) {
  const StagePlace& place = placement.stage[op.stage];
  const bool by_microbatch = counts_microbatches(op.kind) || cargo_of(op.kind);
  const std::size_t replica = by_microbatch ? op.microbatch % place.replicas.size() : op.part;
  const int home = replica < place.replicas.size() ? place.replicas[replica] : -1;
  const auto of = [&](const std::vector<int>& devices, std::size_t part) {
    return part < devices.size() ? devices[part] : -1;
  };
  switch (op.kind) {
    case OpKind::input_grad:
      if (place.input_grad.empty()) return op.part == 0 ? home : -1;
      return of(place.input_grad, op.part);
    case OpKind::weight_grad:
    case OpKind::update:
    case OpKind::reduce_grad:
    case OpKind::send_weights:
      return home < 0 || place.weight_grad.empty() ? home : place.weight_grad[0];
    case OpKind::recompute:
    case OpKind::prefetch:
      return place.apart() ? stash_reader_at(place, op.part) : home;
    case OpKind::backward:
      if (!place.weight_grad.empty()) return place.weight_grad[0];
      return place.input_grad.empty() ? home : place.input_grad[0];
    case OpKind::forward:
    case OpKind::offload:
    case OpKind::send_forward:
    case OpKind::receive_forward:
    case OpKind::send_backward:
    case OpKind::receive_backward:
    case OpKind::send_stash:
    case OpKind::receive_stash:
    case OpKind::receive_weights:
      return home;
  }
  return -1;
}

std::int64_t part_of(std::int64_t whole, const StagePlace& place, int part) {
  if (place.share.empty()) return part == 0 ? whole : 0;
  // Differences of rounded running sums, so that the parts add up exactly.
  double before = 0;
  for (int i = 0; i < part; ++i) before += nth(place.share, i);
  const auto up_to = [&](double share) { return std::llround(static_cast<double>(whole) * share); };
  const bool last = part + 1 == static_cast<int>(place.share.size());
  const std::int64_t end = last ? whole : up_to(before + nth(place.share, part));
  return end - up_to(before);
}

std::vector<StageEdge> chain_edges(int stages) {
  std::vector<StageEdge> edges;
  for (int s = 1; s < stages; ++s) {
    edges.push_back({static_cast<std::uint16_t>(s - 1), static_cast<std::uint16_t>(s)});
  }
  return edges;
}

Partition partition_from_cuts(const std::vector<int>& last_layers, int layers) {
  Partition partition;
  partition.stages = static_cast<int>(last_layers.size()) + 1;
  std::size_t stage = 0;
  for (int layer = 0; layer < layers; ++layer) {
    partition.stage_of.push_back(static_cast<int>(stage));
    if (stage < last_layers.size() && layer == last_layers[stage]) ++stage;
  }
  return partition;
}

void check(const Partition& partition, const Model& model) {
  if (partition.stage_of.size() != model.layers.size()) {
    throw UsageError(fmt::format("the partition has {} layers, but the trace has {}",
                                 partition.stage_of.size(), model.layers.size()));
  }
  std::vector<int> count(as_size(std::max(partition.stages, 0)));
  for (std::size_t layer = 0; layer < partition.stage_of.size(); ++layer) {
    const int stage = partition.stage_of[layer];
    if (stage < 0 || stage >= partition.stages) {
      throw UsageError(
          fmt::format("layer {} (\"{}\") is put in stage {}, but there are stages 0 to {} only",
                      layer, model.layers[layer].name, stage, partition.stages - 1));
    }
    ++nth(count, stage);
  }
  const auto empty = std::find(count.begin(), count.end(), 0);
  if (empty != count.end()) {
    throw UsageError(fmt::format("stage {} of {} has no layer; every stage needs at least one",
                                 empty - count.begin(), partition.stages));
  }
  for (const LayerEdge& edge : edges_of(model)) {
    const auto from = as_size(edge.from);
    const auto to = as_size(edge.to);
    if (partition.stage_of[from] <= partition.stage_of[to]) continue;
    throw UsageError(
        fmt::format("layer {} (\"{}\", stage {}) feeds layer {} (\"{}\", stage {}); "
                    "a stage may feed later stages only",
                    from, model.layers[from].name, partition.stage_of[from], to,
                    model.layers[to].name, partition.stage_of[to]));
  }
}

std::vector<StageFlow> stage_flows(const Partition& partition, const Model& model) {
  // (layer, receiving stage) pairs, each counted once even if several layers of that stage read it
  std::map<std::pair<int, int>, bool> sent;
  std::map<StageEdge, Bytes> bytes;
  for (const LayerEdge& edge : edges_of(model)) {
    const int from = nth(partition.stage_of, edge.from);
    const int to = nth(partition.stage_of, edge.to);
    if (from == to || !sent.try_emplace({edge.from, to}, true).second) continue;
    bytes[{static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to)}] +=
        nth(model.layers, edge.from).output;
  }
  std::vector<StageFlow> flows;
  for (const auto& [edge, sum] : bytes) flows.push_back({edge, sum});
  return flows;
}

std::string print(const Partition& partition) {
  std::string text;
  const auto layers = static_cast<int>(partition.stage_of.size());
  for (int stage = 0; stage < partition.stages; ++stage) {
    if (stage > 0) text += " | ";
    bool first = true;
    for (int layer = 0; layer < layers; ++layer) {
      if (nth(partition.stage_of, layer) != stage) continue;
      int last = layer;
      while (last + 1 < layers && partition.stage_of[as_size(last) + 1] == stage) {
        ++last;
      }
      if (!first) text += ",";
      text += last == layer ? fmt::format("{}", layer) : fmt::format("{}-{}", layer, last);
      first = false;
      layer = last;
    }
  }
  return text;
}

}  // namespace stageline
