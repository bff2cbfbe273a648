#include "tools/planner/cuts/cut_space.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_models/recomputation.hpp"
#include "cost_models/state_bytes.hpp"
#include "cost_models/tied_weights.hpp"
#include "schedulers/partition/cuts.hpp"
#include "schedulers/partition/pipedream.hpp"
#include "schedulers/partition/transformer_blocks.hpp"
#include "sim/base/errors.hpp"
#include "sim/rates.hpp"

namespace stageline::planner {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

double ps(Time time) { return static_cast<double>(time.count()); }
double bytes(Bytes size) { return static_cast<double>(size.count); }
double ps_a_byte(Bandwidth bandwidth) {
  return bandwidth.is_unlimited() ? 0 : 1e12 / static_cast<double>(bandwidth.bytes_per_second);
}

Case cut_by_balanced(const Case& asked) {
  if (asked.program) {
    throw UsageError(
        "a cut is searched for schedules: a given program was written for its own stages; give "
        "--partition a cut");
  }
  if (asked.spec.scheduler->assign != nullptr) {
    throw UsageError(fmt::format("{} cuts the model itself, so there is no cut to search",
                                 asked.spec.scheduler->name));
  }
  Case balanced = asked;
  balanced.partition = "balanced";
  return balanced;
}

// The blocking collectives of every unit's F, I and W in a run of ranks, as priced by themselves.
std::vector<BlockingTimes> collectives_of(const Case& asked, const Layout& layout,
                                          const std::vector<int>& first_layer) {
  const std::size_t units = first_layer.size() - 1;
  if (!asked.ranked || units > as_size(max_stages)) return std::vector<BlockingTimes>(units);
  std::vector<int> last_layers;
  for (std::size_t unit = 1; unit < units; ++unit) last_layers.push_back(first_layer[unit] - 1);
  Case each = asked;
  each.recomputation = {};
  Layout alone;
  alone.plan.partition =
      partition_from_cuts(last_layers, static_cast<int>(asked.model.layers.size()));
  alone.pipeline.stage.assign(units, layout.pipeline.stage.front());
  alone.placement.stage.assign(units, layout.placement.stage.front());
  std::vector<BlockingTimes> times;
  for (const StageCosts& unit : costs_of(each, alone).stage) times.push_back(unit.blocking);
  return times;
}

// Micro-batches in flight, of one stage on one device.
struct StageInFlight {
  int ahead = 0;  // forwards before their B or I
  int held = 0;   // and before their B or W
};

}  // namespace

CutSpace::CutSpace(const Case& asked, bool whole_blocks)
    : balanced_(cut_by_balanced(asked)), layout_(checked_layout(balanced_)) {
  make_units(balanced_.model, whole_blocks);
  const int stages = layout_.pipeline.stages();
  if (units() < stages) {
    throw UsageError(fmt::format(
        "{} on {} devices has {} stages, but \"{}\" has only {} units to cut between{}; use fewer "
        "devices",
        asked.spec.scheduler->name, asked.cluster.devices.size() / as_size(asked.pipelines()),
        stages, asked.model.name, units(),
        whole_blocks ? " (blocks, what is before them and what is behind them)" : ""));
  }
  microbatches_ = asked.microbatches * layout_.sequence_chunks;
  flushed_ = asked.spec.scheduler->synchrony == Synchrony::synchronous;
  stage_.resize(as_size(stages));
  place_stages();
  count_in_flight();
  sum_times();
  sum_bytes();
  price_routes();
}

void CutSpace::make_units(const Model& model, bool whole_blocks) {
  const int layers = static_cast<int>(model.layers.size());
  if (!whole_blocks) {
    for (int layer = 0; layer <= layers; ++layer) first_layer_.push_back(layer);
    return;
  }
  const std::vector<BlockLayers> blocks = blocks_of(model);
  if (blocks.empty()) {
    throw UsageError(fmt::format(
        "whole blocks are those of transformers, and {} has none (layers of kind attention and mlp, "
        "or block)",
        model.name));
  }
  const auto is_mtp = [&](int layer) { return nth(model.layers, layer).kind == "mtp"; };
  first_layer_.push_back(0);
  for (const BlockLayers& block : blocks) {
    if (block.first > 0) first_layer_.push_back(block.first);
  }
  int behind = blocks.back().last + 1;
  for (int layer = behind; layer < layers; ++layer) {
    if (!is_mtp(layer)) continue;  // a final norm before it belongs to the last block
    first_layer_.push_back(layer);
    behind = layer + 1;
  }
  if (behind < layers) first_layer_.push_back(behind);
  first_layer_.push_back(layers);
}

void CutSpace::place_stages() {
  const Case& asked = balanced_;
  const std::size_t devices = asked.cluster.devices.size() / as_size(asked.pipelines());
  limit_.assign(devices, no_limit);
  for (std::size_t d = 0; d < asked.cluster.devices.size(); ++d) {
    const std::optional<Bytes> memory = usable_memory(asked.cluster.devices[d]);
    if (!memory || !asked.model.bytes_known) continue;
    limit_[d % devices] = std::min(limit_[d % devices], bytes(*memory));
  }
  std::vector<double> stages_on(devices);
  for (const StagePlace& place : layout_.pipeline.stage) {
    for (const int device : place.replicas) ++nth(stages_on, device);
  }
  const std::vector<StageRecomputation> rebuilt =
      by_stage(asked.recomputation, asked.model, layout_.plan.partition);
  for (std::size_t s = 0; s < stage_.size(); ++s) {
    CutStage& stage = stage_[s];
    const StagePlace& place = layout_.pipeline.stage[s];
    stage.devices = place.replicas;
    stage.apart = place.apart();
    stage.turns = static_cast<double>(place.replicas.size());
    stage.limit = no_limit;
    if (!rebuilt.empty()) stage.rebuild = rebuilt[s].rebuild;
    for (const int device : place.replicas) {
      stage.sharers = std::max(stage.sharers, nth(stages_on, device));
      stage.limit = std::min(stage.limit, nth(limit_, device));
      stage.overhead = std::max(stage.overhead, ps(nth(asked.cluster.devices, device).op_overhead));
    }
  }
}

// Counts in a step in which all stages are alike, in the order of its device's ops.
void CutSpace::count_in_flight() {
  const Case& asked = balanced_;
  const int devices = static_cast<int>(limit_.size());
  Problem problem;
  problem.placement = layout_.pipeline;
  problem.costs = uniform_costs(stages(), devices, Time{1000}, Time{1000}, Time{1000});
  problem.microbatches = asked.microbatches;
  problem.steps = flushed_ ? 1 : (3 * devices + asked.microbatches - 1) / asked.microbatches;
  for (int d = 0; d < devices; ++d) problem.devices.push_back(fmt::format("gpu{}", d));
  problem.memory.resize(as_size(devices));
  problem.one_layer = layout_.one_layer;
  problem.knobs = layout_.knobs;
  const Program program = asked.spec.scheduler->schedule(problem);
  const WeightRule rule = asked.weights.value_or(program.settings.weights);
  std::vector<StageInFlight> now;
  for (const std::vector<Op>& ops : program.ops) {
    now.assign(stage_.size(), {});
    for (const Op op : ops) {
      StageInFlight& here = now[op.stage];
      CutStage& stage = stage_[op.stage];
      if (class_of(op.kind) == OpClass::forward) {
        stage.ahead = std::max<double>(stage.ahead, ++here.ahead * stage.turns);
        stage.held = std::max<double>(stage.held, ++here.held);
      }
      split_ = split_ || op.kind == OpKind::input_grad;
      if (op.kind == OpKind::backward || op.kind == OpKind::input_grad) --here.ahead;
      if (op.kind == OpKind::backward || op.kind == OpKind::weight_grad) --here.held;
    }
  }
  for (CutStage& stage : stage_) {
    if (stage.apart) stage.ahead = stage.held = 2.0 * stages();
    stage.held /= layout_.sequence_chunks;
    if (rule == WeightRule::double_buffer) stage.versions = 2;
    if (rule == WeightRule::stash || rule == WeightRule::vertical_sync) {
      stage.versions = stage.held;
    }
  }
}

void CutSpace::sum_times() {
  const Case& asked = balanced_;
  const Model& model = asked.model;
  std::vector<Rates> kinds;
  std::vector<double> whole;  // by kind, of the whole model
  const auto kind_of = [&](Rates rates) {
    const auto found = std::find(kinds.begin(), kinds.end(), rates);
    const auto kind = as_size(found - kinds.begin());
    if (found == kinds.end()) kinds.push_back(rates);
    return kind;
  };
  const std::vector<BlockingTimes> collectives = collectives_of(asked, layout_, first_layer_);
  const auto add_kind = [&] {
    const Rates rates = kinds.back();
    Times sums{{0}, {0}, {0}};
    for (std::size_t unit = 0; unit + 1 < first_layer_.size(); ++unit) {
      ClassTimes forward;
      ClassTimes back;
      ClassTimes later;
      for (int layer = first_layer_[unit]; layer < first_layer_[unit + 1]; ++layer) {
        const Layer& one = nth(model.layers, layer);
        const auto timed = [&](Time time) {
          return ClassTimes{time, one.memory_bound ? time : Time{}};
        };
        forward += timed(one.forward);
        back += timed(split_ ? one.input_grad : one.backward);
        if (split_) later += timed(one.weight_grad);
      }
      const BlockingTimes& blocking = collectives[unit];
      const double share = 1.0 / layout_.sequence_chunks;
      const auto grow = [&](std::vector<double>& sum, ClassTimes work, Time blocked) {
        sum.push_back(sum.back() + (picoseconds(work, rates) + ps(blocked)) * share);
      };
      grow(sums.forward, forward, blocking.forward);
      grow(sums.back, back, split_ ? blocking.input_grad : blocking.backward);
      grow(sums.later, later, split_ ? blocking.weight_grad : Time{});
    }
    whole.push_back(sums.forward.back() + sums.back.back() + sums.later.back());
    times_.push_back(std::move(sums));
  };
  for (CutStage& stage : stage_) {
    double slowest = -1;
    for (const int device : stage.devices) {
      const std::size_t kind = kind_of(rates_of(nth(asked.cluster.devices, device)));
      if (kind == times_.size()) add_kind();
      if (whole[kind] > slowest) {
        slowest = whole[kind];
        stage.kind = kind;
      }
    }
  }
}

void CutSpace::sum_bytes() {
  const Case& asked = balanced_;
  // Every cut has the first layer and the last one on the same devices.
  const Model model =
      held_on(asked.ranked ? with_state(asked.model, asked.ranked->grid().degrees()) : asked.model,
              layout_.plan.partition, layout_.placement);
  const std::vector<Bytes> crossing = crossing_bytes(model);
  StageRecomputation selective{Rebuild::selective, 1};
  for (const Recomputation::Part& part : asked.recomputation.parts) {
    if (part.how.rebuild == Rebuild::selective) selective = part.how;
  }
  for (std::vector<double>* const sum : {&weights_, &state_, &stash_, &selective_}) {
    sum->assign(first_layer_.size(), 0);
  }
  crossing_.assign(first_layer_.size(), 0);
  for (std::size_t unit = 0; unit + 1 < first_layer_.size(); ++unit) {
    const auto grow = [&](std::vector<double>& sum, double more) { sum[unit + 1] += more; };
    for (std::vector<double>* const sum : {&weights_, &state_, &stash_, &selective_}) {
      (*sum)[unit + 1] = (*sum)[unit];
    }
    for (int layer = first_layer_[unit]; layer < first_layer_[unit + 1]; ++layer) {
      const Layer& one = nth(model.layers, layer);
      grow(weights_, bytes(one.weights));
      grow(state_, bytes(one.gradients + one.optimizer_state));
      grow(stash_, bytes(one.stash_input_grad + one.stash_weight_grad));
      grow(selective_, bytes(selective_stash(one, selective, 0)));
    }
    if (unit > 0) crossing_[unit] = bytes(nth(crossing, first_layer_[unit] - 1));
  }
}

void CutSpace::price_routes() {
  const Network network = costs_of(balanced_, layout_).network;
  resources_ = network.resources.size();
  const double chunk = 1.0 / layout_.sequence_chunks;
  for (std::size_t s = 0; s < stage_.size(); ++s) {
    CutStage& stage = stage_[s];
    stage.into.assign(first_layer_.size(), 0);
    if (s == 0) continue;
    const int from = stage_[s - 1].devices.front();
    const int to = stage.devices.front();
    if (from == to) continue;
    const Route& there = network.between(from, to);
    const Route& back = network.between(to, from);
    for (std::size_t unit = 1; unit < first_layer_.size(); ++unit) {
      stage.into[unit] = crossing_[unit] * ps_a_byte(there.bandwidth) * chunk + ps(there.latency);
    }
    for (const Route* const route : {&there, &back}) {
      for (std::size_t i = 0; i < route->resources.size(); ++i) {
        const int resource = route->resources[i];
        const double load = route->load.empty() ? 1 : route->load[i];
        stage.loads.push_back(
            {as_size(resource), load * chunk * ps_a_byte(nth(network.capacity, resource))});
      }
    }
  }
}

double CutSpace::cuts() const {
  double count = 1;  // (units - 1 over stages - 1)
  for (int k = 1; k < stages(); ++k) count *= static_cast<double>(units() - k) / k;
  return std::round(count);
}

Begins CutSpace::first_cut() const {
  Begins cut;
  for (int s = 1; s < stages(); ++s) cut.push_back(s);
  return cut;
}

bool CutSpace::next_cut(Begins& cut) const {
  for (std::size_t i = cut.size(); i-- > 0;) {
    const int last = units() - static_cast<int>(cut.size() - i);
    if (cut[i] == last) continue;
    ++cut[i];
    for (std::size_t j = i + 1; j < cut.size(); ++j) cut[j] = cut[j - 1] + 1;
    return true;
  }
  return false;
}

std::string CutSpace::text(const Begins& cut) const {
  std::string text;
  int first = 0;
  for (const int begin : cut) {
    const int next = nth(first_layer_, begin);
    text += next - 1 == first ? fmt::format("{},", first) : fmt::format("{}-{},", first, next - 1);
    first = next;
  }
  return text + fmt::format("{}-", first);
}

std::optional<Begins> CutSpace::cut_by(const std::string& partitioner) const {
  Case asked = balanced_;
  asked.partition = partitioner;
  try {
    const Partition partition =
        partitioner == "balanced" ? layout_.plan.partition : lay_out(asked).plan.partition;
    Begins cut;
    for (const int last : last_layers_of(partition)) {
      const auto at = std::lower_bound(first_layer_.begin(), first_layer_.end(), last + 1);
      if (*at != last + 1) return std::nullopt;
      cut.push_back(static_cast<int>(at - first_layer_.begin()));
    }
    if (cut.size() + 1 != stage_.size()) return std::nullopt;
    return cut;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

}  // namespace stageline::planner
