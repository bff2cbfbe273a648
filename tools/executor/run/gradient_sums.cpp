// Sums weight gradients over micro-batches and replicas.
#include "tools/executor/run/gradient_sums.hpp"

#include <algorithm>
#include <utility>

#include "tools/executor/devices/device.hpp"
#include "tools/executor/run/optimizer_shards.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;

std::vector<Tensors> zeros_of(const DeviceModel& here, int stage) {
  std::vector<Tensors> all;
  for (const std::size_t layer : here.layers_of(stage)) {
    Tensors& zeros = all.emplace_back();
    for (const Tensor& value : here.model.weights[layer].values) {
      zeros.push_back(at::zeros_like(value));
    }
  }
  return all;
}

}  // namespace

GradientSums::GradientSums(DeviceModel& here, Exchange& exchange, const StageMessages& messages)
    : here_(here), exchange_(exchange), messages_(messages) {
  const int stages = here.job.program.stages();
  sums_.resize(as_size(stages));
  summed_.resize(as_size(stages));
  spare_.resize(as_size(stages));
  for (int s = 0; s < stages; ++s) {
    if (here.has_role(s, OpKind::weight_grad)) nth(spare_, s).push_back(zeros_of(here, s));
  }
}

std::uint32_t GradientSums::update_of(Op op) const {
  return op.microbatch /
         static_cast<std::uint32_t>(microbatches_per_update(here_.job.program, op.stage));
}

std::vector<Tensors>& GradientSums::of(int stage, std::uint32_t update) {
  const auto s = as_size(stage);
  const auto [at, fresh] = sums_[s].try_emplace(update);
  if (!fresh) return at->second;
  if (spare_[s].empty()) {
    at->second = zeros_of(here_, stage);
  } else {
    at->second = std::move(spare_[s].back());
    spare_[s].pop_back();
  }
  return at->second;
}

void GradientSums::note_weight_grad(Op op) {
  const auto s = as_size(op.stage);
  const std::vector<int>& replicas = here_.place(op.stage).replicas;
  if (replicas.size() < 2) return;
  const auto size =
      static_cast<std::uint32_t>(microbatches_per_update(here_.job.program, op.stage));
  const std::uint32_t number = update_of(op);
  const std::uint32_t last = std::min((number + 1) * size, here_.job.program.total_microbatches());
  int mine = 0;
  for (std::uint32_t m = number * size; m < last; ++m) {
    mine += replicas[m % replicas.size()] == here_.device ? 1 : 0;
  }
  if (++summed_[s][number] != mine) return;
  Tensors& shown = exchange_.reductions[s][number]->of_replica[op.microbatch % replicas.size()];
  for (const Tensors& layer : of(op)) shown.insert(shown.end(), layer.begin(), layer.end());
  sums_[s].erase(number);
}

std::vector<Tensors> GradientSums::reduced(Op update) {
  const auto s = as_size(update.stage);
  const std::size_t replicas = here_.place(update.stage).replicas.size();
  if (replicas < 2) {
    std::vector<Tensors> mine = std::move(of(update.stage, update.microbatch));
    sums_[s].erase(update.microbatch);
    return mine;
  }
  Reduction& reduction = *exchange_.reductions[s][update.microbatch];
  const auto me = as_size(here_.replica_of(update.stage));
  const bool sharded = is_sharded(here_.job, update.stage);
  Tensors sum;
  if (sharded && !exchange_.in_one_process) {
    sum = sum_of_own_shard(update.stage, reduction, me);
  } else {
    const std::lock_guard lock(reduction.mutex);
    if (!std::exchange(reduction.is_summed, true)) {
      sharded ? scatter_sums(reduction) : sum_up(reduction, me);
    }
    for (const Tensor& gradient : std::exchange(reduction.of_replica[me], {})) {
      sum.push_back(messages_.for_use_here(gradient));
    }
  }
  std::vector<Tensors> by_layer;
  auto next = sum.begin();
  for (const std::size_t layer : here_.layers_of(update.stage)) {
    const auto count = static_cast<std::ptrdiff_t>(here_.model.weights[layer].values.size());
    by_layer.emplace_back(next, next + count);
    next += count;
  }
  return by_layer;
}

// In the order of the replicas, so that the sum is the same wherever it is made. Other processes
// have copies of these tensors, which may still be on their way there.
void GradientSums::sum_up(Reduction& reduction, std::size_t me) const {
  const Tensors* first = nullptr;
  std::size_t count = 0;
  for (const Tensors& of_replica : reduction.of_replica) {
    if (of_replica.empty()) continue;  // no micro-batch of this update was its own
    ++count;
    if (first == nullptr) first = &of_replica;
  }
  const bool shared = exchange_.in_one_process;
  Tensors sum;
  for (std::size_t i = 0; i < first->size(); ++i) {
    Tensor& total = sum.emplace_back(messages_.for_use_here((*first)[i]));
    if (!shared) total = total.clone();
    for (const Tensors& of_replica : reduction.of_replica) {
      if (of_replica.empty() || &of_replica == first) continue;
      total.add_(messages_.for_use_here(of_replica[i]));
    }
    if (divisor(count) > 1) total.div_(divisor(count));
  }
  if (shared) {
    for (Tensors& its : reduction.of_replica) {
      its.resize(sum.size());
      for (std::size_t i = 0; i < its.size(); ++i) {
        if (!its[i].defined()) {
          its[i] = sum[i].clone();
        } else if (!its[i].is_same(sum[i])) {
          its[i].copy_(sum[i]);
        }
      }
    }
    synchronize(here_.where);
  } else {
    reduction.of_replica[me] = std::move(sum);
  }
}

// Where each micro-batch is a mini-batch of its own, the update takes their mean.
double GradientSums::divisor(std::size_t summed) const {
  const bool sums = updates_by_step(here_.job.program.settings.weights);
  return sums ? 1 : static_cast<double>(summed);
}

// The shard of each replica, into its own tensors: what its part of a reduce-scatter would do. In
// place, and in the order of the replicas, as in sum_up().
void GradientSums::scatter_sums(Reduction& reduction) const {
  std::vector<const Tensors*> given;
  for (const Tensors& of_replica : reduction.of_replica) {
    if (!of_replica.empty()) given.push_back(&of_replica);
  }
  const Tensors& first = *given[0];
  const double divided_by = divisor(given.size());
  const std::size_t replicas = reduction.of_replica.size();
  for (std::size_t r = 0; r < replicas; ++r) {
    Tensors& its = reduction.of_replica[r];
    if (its.empty()) {
      for (const Tensor& like : first) its.push_back(at::zeros_like(like));
    }
    for (const Piece& piece : pieces_of(first, r, replicas)) {
      Tensor total = view_of(messages_.for_use_here(first[piece.weight]), piece);
      for (std::size_t i = 1; i < given.size(); ++i) {
        total.add_(view_of(messages_.for_use_here((*given[i])[piece.weight]), piece));
      }
      if (divided_by > 1) total.div_(divided_by);
      Tensor own = view_of(its[piece.weight], piece);
      if (!own.is_alias_of(total)) own.copy_(total);
    }
  }
  synchronize(here_.where);
}

// Between processes: the others have sent the pieces of this device's shard alone.
Tensors GradientSums::sum_of_own_shard(int stage, const Reduction& reduction,
                                       std::size_t me) const {
  const std::size_t replicas = reduction.of_replica.size();
  std::size_t count = 0;
  Tensors sums;
  for (std::size_t r = 0; r < replicas; ++r) {
    const Tensors& given = reduction.of_replica[r];
    if (given.empty()) continue;  // no micro-batch of this update was its own
    ++count;
    const Tensors parts = r == me ? shard_of(given, me, replicas) : given;
    sums.resize(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (sums[i].defined()) {
        sums[i].add_(parts[i]);
      } else {
        sums[i] = parts[i].clone();
      }
    }
  }
  // What this device has summed into may still be on its way to the others.
  Tensors whole = flattened(zeros_of(here_, stage));
  const Tensors shard = shard_of(whole, me, replicas);
  for (std::size_t i = 0; i < shard.size(); ++i) {
    shard[i].copy_(messages_.for_use_here(sums.at(i)));
    if (divisor(count) > 1) shard[i].div_(divisor(count));
  }
  return whole;
}

void GradientSums::give_back(Op update, std::vector<Tensors> zeros) {
  const bool others = !sums_[update.stage].empty();  // in use, and spare later
  if (spare_[update.stage].empty() && !others) spare_[update.stage].push_back(std::move(zeros));
  summed_[update.stage].erase(update.microbatch);
}

void GradientSums::clear() {
  for (auto& of_stage : sums_) of_stage.clear();
  for (auto& of_stage : summed_) of_stage.clear();
}

void SumsInUse::swap() {
  const std::vector<std::size_t>& layers = here_.layers_of(stage_);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::swap(here_.model.weights[layers[i]].gradients, sums_[i]);
  }
}

}  // namespace stageline::executor
