// Chooses, makes, receives and drops versions of weights.
#include "tools/executor/run/stage_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/executor/run/stash_payload.hpp"
#include "tools/executor/tensors/memory_log.hpp"

namespace stageline::executor {

using at::Tensor;

StageWeights::StageWeights(DeviceModel& here, Exchange& exchange, StageMessages& messages,
                           const PlannedVersions& planned)
    : here_(here),
      job_(here.job),
      exchange_(exchange),
      messages_(messages),
      planned_(planned),
      shards_(here, exchange, messages),
      corrections_(parse_corrections(here.job.program.settings.correction)) {
  const auto stages = as_size(job_.program.stages());
  newest_.resize(stages);
  past_.resize(stages);
  owns_.resize(stages);
  room_taken_.resize(stages);
  forwards_.resize(stages);
  memory_.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) memory_[s].resize(here.cut.layers[s].size());
  if (!job_.plan || job_.plan->start.stage.empty()) return;
  for (std::size_t s = 0; s < stages; ++s) {
    if (here.holds[s]) begin_at(s, job_.plan->start.stage[s]);
  }
}

void StageWeights::begin_at(std::size_t stage, const StageState& start) {
  const auto here = [this](const Tensors& some) {
    Tensors result;
    for (const Tensor& tensor : some) {
      result.push_back(tensor.to(here_.model.options, false, true));
    }
    return result;
  };
  const auto all_here = [&](const std::vector<Tensors>& some) {
    std::vector<Tensors> result;
    for (const Tensors& layer : some) result.push_back(here(layer));
    return result;
  };
  for (const auto& [number, version] : start.versions) {
    StageVersion mine{all_here(version.values), all_here(version.memory)};
    if (number != start.newest) {
      past_[stage][number] = std::move(mine);
      continue;
    }
    for (std::size_t i = 0; i < mine.values.size(); ++i) {
      LayerWeights& weights = here_.model.weights[here_.cut.layers[stage][i]];
      weights.values = std::move(mine.values[i]);
      weights.state = here(start.optimizer[i]);
      weights.updates = start.updates[i];
    }
    memory_[stage] = std::move(mine.memory);
  }
  const int replica = here_.replica_of(static_cast<int>(stage));
  if (replica >= 0) {
    set_statistics(here_.model, here_.cut.layers[stage], nth(start.statistics, replica));
  }
}

void StageWeights::restart() {
  shards_.restart();
  for (std::size_t s = 0; s < newest_.size(); ++s) {
    const auto stage = static_cast<int>(s);
    newest_[s] = planned_.at_start(s);
    forwards_[s].clear();
    const auto& ops = job_.program.ops[as_size(here_.device)];
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      if (op->kind == OpKind::forward && op->stage == s) forwards_[s].push_back(plain(*op));
    }
    if (!job_.plan) {
      for (Tensors& layer : memory_[s]) layer.clear();
      past_[s].clear();
    }
    if (is_shared(stage)) {
      if (job_.separate && !owns_[s]) copy_values(stage);
      owns_[s] = job_.separate;
    }
    if (counts_versions(stage)) {
      copy_values(stage);  // what no log has seen coming, none sees going
      owns_[s] = false;
      room_taken_[s] = false;
    }
    if (!job_.program.settings.weights_transfer && here_.has_role(stage, OpKind::update)) {
      SharedWeights& shared = *exchange_.weights[s];
      const std::lock_guard lock(shared.mutex);
      shared.versions.clear();
      shared.versions[newest_[s]] = shown_version(stage);
    }
  }
}

void StageWeights::copy_values(int stage) {
  for (const std::size_t layer : here_.layers_of(stage)) {
    for (Tensor& value : here_.model.weights[layer].values) value = value.detach().clone();
  }
}

StageVersion StageWeights::newest_version(int stage) const {
  return {here_.values_of(stage), nth(memory_, stage)};
}

// ---- versions from another device

bool StageWeights::is_updated_elsewhere(int stage) const {
  const StagePlace& place = here_.place(stage);
  return place.apart() && place.device(Role::weight_grad) != here_.device;
}

// Whether the newest weights may be in the tensors of the device that updates them.
bool StageWeights::is_shared(int stage) const {
  return !job_.program.settings.weights_transfer && is_updated_elsewhere(stage);
}

// Whether ops here may read versions that are not the newest. Under weight stashing a micro-batch
// in flight keeps the weights of its own forward; only where that is elsewhere its backward finds
// them among the past ones.
bool StageWeights::reads_past(int stage) const {
  if (job_.plan) return true;
  const WeightRule rule = job_.program.settings.weights;
  if (rule == WeightRule::vertical_sync || rule == WeightRule::double_buffer) return true;
  const StagePlace& place = here_.place(stage);
  return keeps_versions(job_.program.settings) && place.apart() &&
         place.device(Role::forward) != here_.device;
}

void StageWeights::receive(int stage) {
  if (!is_updated_elsewhere(stage)) return;
  if (counts_versions(stage) && !owns_[as_size(stage)]) {
    copy_values(stage);
    owns_[as_size(stage)] = true;
  }
  if (job_.program.settings.weights_transfer) {
    receive_messages(stage);
  } else {
    receive_shared(stage);
  }
}

void StageWeights::receive_shared(int stage) {
  SharedWeights& shared = *nth(exchange_.weights, stage);
  const std::lock_guard lock(shared.mutex);
  auto next = shared.versions.upper_bound(newest(stage));
  for (; next != shared.versions.end(); ++next) {
    StageVersion version = next->second;
    for (auto* const tensors : {&version.values, &version.memory}) {
      for (Tensors& layer : *tensors) {
        for (Tensor& tensor : layer) tensor = messages_.for_use_here(tensor);
      }
    }
    if (job_.separate) version.values = own_copy(stage, version.values);
    take_in(stage, std::move(version), next->first);
  }
}

// Whether nothing here reads a version, or a correction remembers it, once the next has come.
bool StageWeights::overwrites(int stage) const {
  if (reads_past(stage) || corrections_.remembers()) return false;
  return !keeps_versions(job_.program.settings) || !here_.runs_backward(stage);
}

// With Job::separate: `values` in this device's memory, in the tensors of the version before or
// beside them.
std::vector<Tensors> StageWeights::own_copy(int stage, const std::vector<Tensors>& values) const {
  const bool over = overwrites(stage);
  std::vector<Tensors> mine = here_.values_of(stage);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (std::size_t k = 0; k < mine[i].size(); ++k) {
      if (over) {
        mine[i][k].copy_(values[i][k]);
      } else {
        mine[i][k] = values[i][k].clone();
      }
    }
  }
  return mine;
}

void StageWeights::receive_messages(int stage) {
  const auto s = as_size(stage);
  const std::uint32_t first = planned_.at_start(s);
  const auto all = first + static_cast<std::uint32_t>(updates(job_.program, stage));
  for (const int w : nth(job_.graph.receives, Cargo::weights)[s]) {
    if (wire(job_.graph, Cargo::weights, w).to != here_.device) continue;
    while (newest_[s] < all && messages_.weights_arrived(w, newest_[s] - first)) {
      StageVersion version;
      messages_.take_weights(w, newest_[s] - first, [&](const Tensors& flat) {
        std::size_t next = 0;
        for (const std::size_t layer : here_.cut.layers[s]) {
          const std::size_t count = here_.model.weights[layer].values.size();
          version.values.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(next),
                                      flat.begin() + static_cast<std::ptrdiff_t>(next + count));
          next += count;
        }
        if (!job_.separate) return;
        take_room(stage);
        version.values = own_copy(stage, version.values);
      });
      version.memory = remembered(stage, here_.values_of(stage), version.values);
      take_in(stage, std::move(version), newest_[s] + 1);
    }
  }
}

// A version that comes beside others, which ops may read, takes the room that stands for it. Once
// the op has dropped what none reads, there is room again.
void StageWeights::take_room(int stage) {
  if (!counts_versions(stage) || room_taken_[as_size(stage)]) return;
  room_taken_[as_size(stage)] = true;
  MemoryLog::count(here_.where, -bytes_of_values(stage));
}

void StageWeights::give_room_back(int stage) {
  if (!room_taken_[as_size(stage)]) return;
  room_taken_[as_size(stage)] = false;
  MemoryLog::count(here_.where, bytes_of_values(stage));
}

std::int64_t StageWeights::bytes_of_values(int stage) const {
  Tensors all;
  for (const Tensors& layer : here_.values_of(stage)) {
    all.insert(all.end(), layer.begin(), layer.end());
  }
  return storage_bytes(all);
}

void StageWeights::leave_rest() {
  for (std::size_t s = 0; s < newest_.size(); ++s) {
    const auto stage = static_cast<int>(s);
    if (!here_.holds[s] || !has_room_for_next(stage)) continue;
    const std::uint32_t first = planned_.at_start(s);
    const auto sent = static_cast<std::uint32_t>(updates(job_.program, stage));
    for (const int w : nth(job_.graph.receives, Cargo::weights)[s]) {
      if (wire(job_.graph, Cargo::weights, w).to != here_.device) continue;
      for (std::uint32_t number = newest_[s] - first; number < sent; ++number) {
        messages_.leave_weights(w, number);
      }
    }
  }
}

void StageWeights::take_in(int stage, StageVersion version, std::uint32_t number) {
  const auto s = as_size(stage);
  if (reads_past(stage)) past_[s][newest_[s]] = newest_version(stage);
  for (std::size_t i = 0; i < version.values.size(); ++i) {
    here_.model.weights[here_.cut.layers[s][i]].values = std::move(version.values[i]);
  }
  memory_[s] = std::move(version.memory);
  newest_[s] = number;
}

void StageWeights::await_planned(Op op) {
  const std::uint32_t planned = planned_.version_of(op).value_or(0);
  while (newest(op.stage) < planned) {
    messages_.pause();
    receive(op.stage);
  }
}

void StageWeights::send(int stage, std::uint32_t number) {
  messages_.send_weights(stage, number, here_.values_of(stage));
  if (job_.program.settings.weights_transfer || !here_.place(stage).apart()) return;
  SharedWeights& shared = *nth(exchange_.weights, stage);
  const std::lock_guard lock(shared.mutex);
  if (!job_.plan) shared.versions.clear();
  shared.versions[newest(stage)] = shown_version(stage);
  if (job_.plan) {
    const std::uint32_t needed = planned_.oldest_read_after(stage, newest(stage));
    shared.versions.erase(shared.versions.begin(),
                          shared.versions.lower_bound(std::min(needed, newest(stage))));
  }
}

// What other devices read without a message. With memories of their own they copy it, and nothing
// holds it on the way.
StageVersion StageWeights::shown_version(int stage) const {
  StageVersion version = newest_version(stage);
  if (!job_.separate) return version;
  const auto of_nobody = MemoryLog::look_away();
  for (auto* const tensors : {&version.values, &version.memory}) {
    for (Tensors& layer : *tensors) {
      for (Tensor& tensor : layer) tensor = tensor.detach().clone();
    }
  }
  return version;
}

// ---- which version an op reads

// An older version, or the oldest that is still kept; the newest where none is.
StageVersion StageWeights::version(int stage, std::uint32_t wanted) const {
  if (wanted == newest(stage)) return newest_version(stage);
  const auto found = past(stage).lower_bound(wanted);
  if (job_.plan && (found == past(stage).end() || found->first != wanted)) {
    throw std::logic_error(
        fmt::format("version {} of stage {} is not there: it was dropped", wanted, stage));
  }
  return found == past(stage).end() ? newest_version(stage) : found->second;
}

std::uint32_t StageWeights::version_for_forward(Op op) {
  if (const std::optional<std::uint32_t> planned = planned_.version_of(op)) return *planned;
  const std::uint32_t latest = newest(op.stage);
  std::uint32_t version = latest;
  if (job_.program.settings.weights == WeightRule::vertical_sync) {
    const auto group = static_cast<std::uint32_t>(microbatches_per_update(job_.program, op.stage));
    if (op.stage == 0) {
      exchange_.entered[op.microbatch] = latest * group;
    } else {
      version = std::min(latest, exchange_.entered[op.microbatch] / group);
    }
    drop_before(op.stage, version);
  } else if (job_.program.settings.weights == WeightRule::double_buffer) {
    version = std::min(latest, delayed_version(job_.program, op));
    drop_before(op.stage, version);
  }
  auto& to_come = forwards_[op.stage];
  if (!to_come.empty()) to_come.pop_back();
  if (!reads_past(op.stage)) give_room_back(op.stage);
  return version;
}

std::vector<Tensors> StageWeights::weights_for_forward(Op op, std::uint32_t number) const {
  if (corrections_.predicts()) return predicted(op.stage, version(op.stage, number));
  if (number == newest(op.stage)) return {};
  return version(op.stage, number).values;
}

std::vector<Tensors> StageWeights::weights_for_backward(Op op, const InFlight& flight) {
  const bool keeps = keeps_versions(job_.program.settings);
  if (!reads_past(op.stage)) give_room_back(op.stage);
  if (keeps && !flight.weights.empty()) return flight.weights;
  const std::uint32_t reads =
      keeps ? flight.version : planned_.version_of(op).value_or(newest(op.stage));
  if (keeps && !job_.plan) drop_before(op.stage, reads);
  give_room_back(op.stage);
  if (corrections_.rebuilds()) {
    if (reads > flight.version) return rebuilt(version(op.stage, reads), reads - flight.version);
  } else if (keeps && corrections_.predicts()) {
    return predicted(op.stage, version(op.stage, reads));
  }
  if (reads == newest(op.stage)) return {};
  return version(op.stage, reads).values;
}

// What a forward reads of a version: a prediction of its later values, where a correction makes
// one.
std::vector<Tensors> StageWeights::predicted(int stage, const StageVersion& version) const {
  const int delay = job_.staleness.empty() ? 0 : nth(job_.staleness, stage);
  std::vector<Tensors> result;
  for (std::size_t i = 0; i < version.values.size(); ++i) {
    result.push_back(corrections_.for_forward(version.values[i], version.memory[i], delay));
  }
  return result;
}

// What a backward reads of a version that is so many updates newer than its forward's.
std::vector<Tensors> StageWeights::rebuilt(const StageVersion& version,
                                           std::uint32_t updates) const {
  std::vector<Tensors> result;
  for (std::size_t i = 0; i < version.values.size(); ++i) {
    result.push_back(
        corrections_.for_backward(version.values[i], version.memory[i], static_cast<int>(updates)));
  }
  return result;
}

// StageVersion::memory of the weights `after`, which follow the newest ones, `before`.
std::vector<Tensors> StageWeights::remembered(int stage, const std::vector<Tensors>& before,
                                              const std::vector<Tensors>& after) const {
  const bool for_backward = corrections_.rebuilds() && !corrections_.predicts();
  if (for_backward && !here_.runs_backward(stage)) return nth(memory_, stage);
  std::vector<Tensors> result;
  for (std::size_t i = 0; i < after.size(); ++i) {
    result.push_back(corrections_.remember(nth(memory_, stage)[i], before[i], after[i]));
  }
  return result;
}

void StageWeights::drop_before(int stage, std::uint32_t number) {
  auto& past = nth(past_, stage);
  past.erase(past.begin(), past.lower_bound(number));
}

// Before an update, under vertical sync and double buffering: a version that no forward to come
// reads makes room for the next one. What is in flight keeps its own.
void StageWeights::make_room(int stage) {
  const WeightRule rule = job_.program.settings.weights;
  const bool buffers = rule == WeightRule::double_buffer;
  if (!buffers && rule != WeightRule::vertical_sync) return;
  if (job_.plan || here_.place(stage).apart()) return;
  const auto& to_come = nth(forwards_, stage);
  // Behind the last forward the newest will do, for a further step reads no older one.
  if (to_come.empty()) return drop_before(stage, newest(stage));
  // Under vertical sync the next forward says what it reads.
  if (buffers) {
    drop_before(stage, std::min(newest(stage), delayed_version(job_.program, to_come.back())));
  }
}

void StageWeights::drop_unneeded(int stage) {
  drop_before(stage, planned_.oldest_needed(stage, newest(stage)));
}

// ---- update

OptimizerStep StageWeights::optimizer_step(int stage) const {
  const std::int64_t step =
      updates_by_step(job_.program.settings.weights)
          ? newest(stage)
          : std::int64_t{newest(stage)} * microbatches_per_update(job_.program, stage);
  const int delay = job_.staleness.empty() ? 0 : nth(job_.staleness, stage);
  return corrections_.optimizer_step(job_.training.recipe, step, delay);
}

// By the gradients in the model, which are zero afterwards. The caller holds the values once.
void StageWeights::step(Op op) {
  // A reader of this version keeps its tensors; the next version is then made beside them.
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::vector<std::size_t>& layers = here_.layers_of(op.stage);
  std::vector<bool> beside;
  for (const std::size_t layer : layers) {
    const Tensors& values = here_.model.weights[layer].values;
    beside.push_back(job_.plan || corrections_.remembers() ||
                     std::any_of(values.begin(), values.end(),
                                 [](const Tensor& v) { return v.use_count() > 2; }));
  }
  const OptimizerStep numbers = optimizer_step(op.stage);
  if (is_sharded(job_, op.stage)) {
    shards_.update(op, numbers, beside);
    for (const std::size_t layer : layers) zero_gradients(here_.model.weights[layer]);
    return;
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    executor::update(here_.model, layers[i], numbers,
                     beside[i] ? NewWeights::beside : NewWeights::in_place);
    zero_gradients(here_.model.weights[layers[i]]);
  }
}

std::uint32_t StageWeights::update(Op op, GradientSums& sums) {
  const auto s = as_size(op.stage);
  std::vector<Tensors> sum = sums.reduced(op);
  const std::vector<Tensors> before = here_.values_of(op.stage);
  make_room(op.stage);
  if (reads_past(op.stage)) past_[s][newest_[s]] = {before, memory_[s]};
  {
    const SumsInUse in_use(here_, op.stage, sum);
    step(op);
  }
  memory_[s] = remembered(op.stage, before, here_.values_of(op.stage));
  sums.give_back(op, std::move(sum));
  ++newest_[s];
  send(op.stage, op.microbatch);
  return newest_[s];
}

}  // namespace stageline::executor
