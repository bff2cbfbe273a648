// Divides the optimizer's state and its step among the replicas of a stage.
#include "tools/executor/run/optimizer_shards.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/tensors/memory_log.hpp"

namespace stageline::executor {

using at::Tensor;

std::vector<Piece> pieces_of(const Tensors& weights, std::size_t replica, std::size_t replicas) {
  std::int64_t all = 0;
  for (const Tensor& weight : weights) all += weight.numel();
  const auto n = static_cast<std::int64_t>(replicas);
  const auto r = static_cast<std::int64_t>(replica);
  const std::int64_t first = all / n * r + std::min(r, all % n);
  const std::int64_t last = first + all / n + (r < all % n ? 1 : 0);
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (std::size_t w = 0; w < weights.size(); ++w) {
    const std::int64_t end = begin + weights[w].numel();
    const std::int64_t from = std::max(begin, first);
    const std::int64_t to = std::min(end, last);
    if (from < to) pieces.push_back({w, from - begin, to - from});
    begin = end;
  }
  return pieces;
}

Tensor view_of(const Tensor& whole, const Piece& piece) {
  return whole.detach().view({-1}).narrow(0, piece.from, piece.count);
}

Tensors shard_of(const Tensors& weights, std::size_t replica, std::size_t replicas) {
  Tensors views;
  for (const Piece& piece : pieces_of(weights, replica, replicas)) {
    views.push_back(view_of(weights[piece.weight], piece));
  }
  return views;
}

Tensors flattened(const std::vector<Tensors>& by_layer) {
  Tensors all;
  for (const Tensors& layer : by_layer) all.insert(all.end(), layer.begin(), layer.end());
  return all;
}

bool is_sharded(const Job& job, int stage) {
  return job.sharded_optimizer && nth(job.program.placement.stage, stage).replicas.size() > 1;
}

namespace {

// The pieces of this device's shard, by layer of the stage, with weights counted within the layer.
std::vector<std::vector<Piece>> own_pieces(const DeviceModel& here, int stage) {
  const std::vector<Tensors> values = here.values_of(stage);
  const auto me = as_size(here.replica_of(stage));
  std::vector<std::vector<Piece>> by_layer(values.size());
  std::size_t layer = 0;
  std::size_t first = 0;  // weight of that layer
  for (Piece piece : pieces_of(flattened(values), me, here.place(stage).replicas.size())) {
    while (piece.weight >= first + values[layer].size()) first += values[layer++].size();
    piece.weight -= first;
    by_layer[layer].push_back(piece);
  }
  return by_layer;
}

}  // namespace

void keep_own_shard(DeviceModel& here, int stage) {
  const std::vector<std::size_t>& layers = here.layers_of(stage);
  const std::vector<std::vector<Piece>> pieces = own_pieces(here, stage);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerWeights& weights = here.model.weights[layers[i]];
    if (weights.values.empty()) continue;
    const std::size_t states = weights.state.size() / weights.values.size();
    weights.state.clear();
    for (const Piece& piece : pieces[i]) {
      for (std::size_t k = 0; k < states; ++k) {
        weights.state.push_back(at::zeros({piece.count}, here.model.options));
      }
    }
  }
}

// ---- the order of updates and gathers

namespace {

// Updates and reads of sharded stages in one compute lane, in its order.
class LaneGathers {
 public:
  LaneGathers(const Job& job, const TaskGraph& graph, int device, GatherNeeds& needs)
      : job_(job),
        graph_(graph),
        device_(device),
        needs_(needs),
        to_gather_(as_size(job.program.stages())) {}

  using Updates = std::map<std::pair<int, std::uint32_t>, std::vector<std::uint32_t>>;

  void walk(std::uint32_t lane, const Updates& updates) {
    for (std::uint32_t at = graph_.lane_begin[lane]; at != graph_.lane_begin[lane + 1]; ++at) {
      const std::uint32_t task = graph_.lane_task[at];
      visit(task, graph_.op[task], updates);
      if (graph_.op[task].overlapped && !graph_.partner.empty()) {
        visit(task, graph_.partner[task], updates);
      }
    }
    for (std::size_t s = 0; s < to_gather_.size(); ++s) {
      if (to_gather_[s]) add(nth(needs_.at_end, device_), static_cast<int>(s), updates);
    }
  }

 private:
  void visit(std::uint32_t task, Op op, const Updates& updates) {
    if (!is_sharded(job_, op.stage)) return;
    std::optional<std::uint32_t>& waiting = to_gather_[op.stage];
    if (waiting) add(needs_.of_task[task], op.stage, updates);
    waiting = op.kind == OpKind::update ? std::optional(op.microbatch) : std::nullopt;
  }

  void add(std::vector<std::uint32_t>& to, int stage, const Updates& updates) const {
    for (const std::uint32_t task : updates.at({stage, *nth(to_gather_, stage)})) {
      if (graph_.lanes[graph_.lane[task]].device != device_) to.push_back(task);
    }
  }

  const Job& job_;
  const TaskGraph& graph_;
  const int device_;
  GatherNeeds& needs_;
  std::vector<std::optional<std::uint32_t>> to_gather_;  // by stage: an update
};

// Runs the lists without times: throws where they cannot end.
void check_ends(const Job& job, const TaskGraph& graph, const GatherNeeds& needs) {
  std::vector<std::uint32_t> head(graph.lanes.size());
  for (std::uint32_t lane = 0; lane < head.size(); ++lane) head[lane] = graph.lane_begin[lane];
  std::vector<bool> done(graph.tasks());
  const auto can_run = [&](std::uint32_t task) {
    for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
      if (!done[graph.need[n]]) return false;
    }
    const std::vector<std::uint32_t>& gathered = needs.of_task[task];
    return std::all_of(gathered.begin(), gathered.end(),
                       [&](std::uint32_t update) { return done[update]; });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t lane = 0; lane < head.size(); ++lane) {
      while (head[lane] != graph.lane_begin[lane + 1] && can_run(graph.lane_task[head[lane]])) {
        done[graph.lane_task[head[lane]++]] = true;
        moved = true;
      }
    }
  }
  for (std::uint32_t lane = 0; lane < head.size(); ++lane) {
    if (head[lane] == graph.lane_begin[lane + 1]) continue;
    const std::uint32_t task = graph.lane_task[head[lane]];
    for (const std::uint32_t update : needs.of_task[task]) {
      if (done[update]) continue;
      throw UsageError(fmt::format(
          "with a sharded optimizer {} on {} needs the weights that {} makes on {}, which waits for it; write updates of all replicas ahead of the next forwards",
          print(graph.op[task]), nth(job.program.devices, graph.lanes[lane].device),
          print(graph.op[update]),
          nth(job.program.devices, graph.lanes[graph.lane[update]].device)));
    }
  }
}

}  // namespace

GatherNeeds gather_needs(const Job& job, const TaskGraph& graph) {
  GatherNeeds needs;
  needs.of_task.resize(graph.tasks());
  needs.at_end.resize(job.program.devices.size());
  if (!job.sharded_optimizer) return needs;
  LaneGathers::Updates updates;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (op.kind == OpKind::update) updates[{op.stage, op.microbatch}].push_back(task);
  }
  for (std::uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
    if (graph.lanes[lane].kind != LaneKind::compute) continue;
    LaneGathers(job, graph, graph.lanes[lane].device, needs).walk(lane, updates);
  }
  check_ends(job, graph, needs);
  return needs;
}

// ---- one device

OptimizerShards::OptimizerShards(DeviceModel& here, Exchange& exchange,
                                 const StageMessages& messages)
    : here_(here),
      exchange_(exchange),
      messages_(messages),
      to_gather_(as_size(here.job.program.stages())) {}

void OptimizerShards::update(Op op, const OptimizerStep& step, const std::vector<bool>& beside) {
  const c10::NoGradGuard plain;
  const std::vector<std::size_t>& layers = here_.layers_of(op.stage);
  const std::vector<std::vector<Piece>> pieces = own_pieces(here_, op.stage);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerWeights& weights = here_.model.weights[layers[i]];
    if (beside[i]) {
      // The other shards of these come by gather().
      const Tensors before = weights.values;
      for (Tensor& value : weights.values) value = at::empty_like(value.detach());
      for (const Piece& piece : pieces[i]) {
        view_of(weights.values[piece.weight], piece).copy_(view_of(before[piece.weight], piece));
      }
    }
    LayerWeights mine;
    mine.updates = weights.updates;
    mine.state = weights.state;
    for (const Piece& piece : pieces[i]) {
      mine.values.push_back(view_of(weights.values[piece.weight], piece));
      mine.gradients.push_back(view_of(weights.gradients[piece.weight], piece));
    }
    executor::update(mine, here_.model.optimizer, step);
    weights.state = std::move(mine.state);
    weights.updates = mine.updates;
  }
  to_gather_[op.stage] = op.microbatch;
  show(op);
}

// Copies: the next update may come before the others have read these.
void OptimizerShards::show(Op op) {
  const auto me = as_size(here_.replica_of(op.stage));
  const auto of_nobody = MemoryLog::look_away();
  Tensors shard;
  for (const Tensor& view :
       shard_of(flattened(here_.values_of(op.stage)), me, here_.place(op.stage).replicas.size())) {
    shard.push_back(view.clone());
  }
  ShownShards& shown = *exchange_.shards[op.stage][op.microbatch];
  const std::lock_guard lock(shown.mutex);
  shown.of_replica[me] = std::move(shard);
}

void OptimizerShards::gather(int stage) {
  const std::optional<std::uint32_t> update = std::exchange(nth(to_gather_, stage), std::nullopt);
  if (!update) return;
  const c10::NoGradGuard plain;
  ShownShards& shown = *nth(exchange_.shards, stage)[*update];
  const auto me = as_size(here_.replica_of(stage));
  const std::size_t replicas = shown.of_replica.size();
  const Tensors weights = flattened(here_.values_of(stage));
  for (std::size_t r = 0; r < replicas; ++r) {
    if (r == me) continue;
    Tensors shard;
    {
      const std::lock_guard lock(shown.mutex);
      shard = shown.of_replica[r];
      const std::size_t readers = exchange_.in_one_process ? replicas - 1 : 1;
      if (++shown.times_read[r] == readers) shown.of_replica[r].clear();
    }
    Tensors to = shard_of(weights, r, replicas);
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i].copy_(messages_.for_use_here(shard.at(i)));
    }
  }
}

void OptimizerShards::gather_all() {
  for (int stage = 0; stage < here_.job.program.stages(); ++stage) gather(stage);
}

void OptimizerShards::restart() { std::fill(to_gather_.begin(), to_gather_.end(), std::nullopt); }

}  // namespace stageline::executor
