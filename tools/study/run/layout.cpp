#include "tools/study/run/layout.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cost_models/block_offload.hpp"
#include "cost_models/serial.hpp"
#include "cost_models/slices.hpp"
#include "cost_models/spread_vocabulary.hpp"
#include "cost_models/stage_costs.hpp"
#include "cost_models/state_bytes.hpp"
#include "cost_models/tied_weights.hpp"
#include "schedulers/parts/spread_vocabulary.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "sim/problem.hpp"
#include "sim/rates.hpp"
#include "sim/sums.hpp"
#include "sim/varied_costs.hpp"
#include "tools/study/run/encoder_cut.hpp"
#include "tools/study/run/given_program.hpp"
#include "tools/study/run/overflow_guard.hpp"
#include "tools/study/run/steps.hpp"

namespace stageline {
namespace {

std::vector<std::string> device_names(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Device& device : cluster.devices) names.push_back(device.name);
  return names;
}

std::vector<std::vector<int>> replicas_of(const Placement& placement) {
  std::vector<std::vector<int>> devices;
  for (const StagePlace& place : placement.stage) devices.push_back(place.replicas);
  return devices;
}

// Neighbouring units in the same place make one stage: by unit, its stage. A unit with parts of I,
// or that nothing feeds (its I is not done), stays by itself.
Partition joined(const Placement& placement, const std::vector<EdgeCosts>& edges) {
  std::vector<bool> fed(placement.stage.size());
  for (const EdgeCosts& edge : edges) fed[edge.edge.to] = true;
  Partition partition;
  for (std::size_t unit = 0; unit < placement.stage.size(); ++unit) {
    const StagePlace& place = placement.stage[unit];
    const bool whole = place.input_grad.size() <= 1 && place.input_grad == place.weight_grad;
    const bool joins =
        unit > 0 && fed[unit] && fed[unit - 1] && whole && place == placement.stage[unit - 1];
    if (!joins) ++partition.stages;
    partition.stage_of.push_back(partition.stages - 1);
  }
  return partition;
}

// The one rate of a device that a scheduler is given: that at which it does the whole model's work.
double whole_model_rate(const Model& model, const Device& device) {
  const Rates rates = rates_of(device);
  if (rates.matrix == rates.memory) return device.rate;
  ClassTimes work;
  for (const Layer& layer : model.layers) {
    const Time time = layer.forward + layer.input_grad + layer.weight_grad;
    work += {time, layer.memory_bound ? time : Time{}};
    work += {layer.update, layer.update};
  }
  const double slowed = picoseconds(work, rates);
  return slowed > 0 ? static_cast<double>(work.all.count()) / slowed : device.rate;
}

// A scheduler that assigns devices itself: every layer a unit, then those that are alike joined.
Layout assigned(const Case& asked) {
  const Scheduler& scheduler = *asked.spec.scheduler;
  if (asked.partition != "balanced") {
    throw UsageError(fmt::format("{} cuts the model itself; leave --partition out (it is \"{}\")",
                                 scheduler.name, asked.partition));
  }
  const int layers = static_cast<int>(asked.model.layers.size());
  std::vector<int> each;
  for (int layer = 0; layer + 1 < layers; ++layer) each.push_back(layer);
  Placement on_one = straight_placement(layers);
  for (StagePlace& place : on_one.stage) place.replicas = {0};
  Cluster alike = asked.cluster;
  std::vector<double> rates;
  for (Device& device : alike.devices) {
    rates.push_back(whole_model_rate(asked.model, device));
    device.rate = 1;
    device.memory_rate = 0;
  }
  const Costs units = stage_costs(asked.model, partition_from_cuts(each, layers), on_one, alike);
  check_sums(units, on_one, 1, 1);
  Layout layout;
  layout.knobs = asked.spec.knobs;
  const Placement placement = scheduler.assign({units, rates, layout.knobs});
  layout.plan.partition = joined(placement, units.edges);
  layout.placement.stage.resize(as_size(layout.plan.partition.stages));
  layout.one_layer.assign(layout.placement.stage.size(), false);
  for (std::size_t unit = 0; unit < placement.stage.size(); ++unit) {
    const auto stage = as_size(layout.plan.partition.stage_of[unit]);
    layout.one_layer[stage] = layout.placement.stage[stage].replicas.empty();
    layout.placement.stage[stage] = placement.stage[unit];
  }
  layout.plan.replicas.assign(layout.placement.stage.size(), 1);
  layout.plan.reason = fmt::format("{} stages, cut and assigned to devices by {}",
                                   layout.plan.partition.stages, scheduler.name);
  return layout;
}

// The network between the devices of the first pipeline.
Network first_of(const Network& network, int devices) {
  Network first = network;
  first.devices = devices;
  if (network.routes.empty()) return first;  // found by the same numbers
  first.routes.clear();
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) first.routes.push_back(network.between(from, to));
  }
  return first;
}

}  // namespace

Problem problem_of(const Case& asked, const Layout& layout, const Costs& costs, int steps) {
  Problem problem;
  problem.placement = layout.pipeline;
  problem.costs = costs;
  problem.microbatches = asked.microbatches;
  problem.steps = steps;
  problem.devices = device_names(asked.cluster);
  // Where sizes are unknown, no limit applies.
  const auto limit = [&](std::optional<Bytes> memory) {
    return asked.model.bytes_known ? memory : std::nullopt;
  };
  for (const Device& device : asked.cluster.devices) {
    problem.memory.push_back(limit(usable_memory(device)));
  }
  for (const Host& host : asked.cluster.hosts) problem.host_memory.push_back(limit(host.memory));
  if (asked.pipelines() > 1) {
    const std::size_t devices = problem.devices.size() / as_size(asked.pipelines());
    problem.devices.resize(devices);
    problem.memory.resize(devices);
    problem.costs.network = first_of(costs.network, static_cast<int>(devices));
    if (!problem.costs.pace.empty()) problem.costs.pace.resize(devices);
    problem.costs.kind_of = of_one_pipeline(costs.kind_of, asked.pipelines());
  }
  problem.one_layer = layout.one_layer;
  problem.knobs = layout.knobs;
  return problem;
}

namespace {

// The stage of the first op of that kind, of the stages that are marked.
std::optional<int> first_stage(const Program& program, OpKind kind, const std::vector<bool>& of) {
  if (std::find(of.begin(), of.end(), true) == of.end()) return std::nullopt;
  for (const std::vector<Op>& list : program.ops) {
    for (const Op op : list) {
      if (op.kind == kind && nth(of, op.stage)) return op.stage;
    }
  }
  return std::nullopt;
}

// A knob that makes the schedule do so, as the user has set it ("recompute=always"); else the flag.
std::string to_leave_out(const Case& asked, std::string_view knob, const std::string& flag) {
  if (asked.program) return flag;
  const auto is_off = [](std::string_view value) {
    return value == "never" || value == "none" || value == "own";
  };
  for (const Knob& one : asked.spec.scheduler->knobs) {
    const std::string& value = asked.spec.knobs.at(std::string(one.name));
    if (one.name == knob && is_off(one.fallback) && value != one.fallback) {
      return fmt::format("{}={}", knob, value);
    }
  }
  return flag;
}

// The knob by which the schedule copies stashes.
std::string_view moves_stashes(const Case& asked) {
  return asked.spec.knobs.count("stashes") > 0 ? "stashes" : "transfer";
}

// `program`: before anything that is asked for is added. Throws UsageError where it does by itself
// what is not to be done at all.
void check_none(const Case& asked, const Layout& layout, const Program& program) {
  const auto who = [&] { return asked.program ? "the given program" : spelled(asked.spec); };
  const std::vector<bool> kept = kept_stages(asked.recomputation, layout.plan.partition);
  if (const std::optional<int> stage = first_stage(program, OpKind::recompute, kept)) {
    const bool everywhere = std::find(kept.begin(), kept.end(), false) == kept.end();
    throw UsageError(fmt::format("--recompute {}: {} recomputes {}by itself; leave out {}",
                                 print(asked.recomputation), who(),
                                 everywhere ? "" : fmt::format("stage {} ", *stage),
                                 to_leave_out(asked, "recompute", "--recompute")));
  }
  const std::vector<bool> resident(kept.size(), asked.offloading.none);
  if (first_stage(program, OpKind::offload, resident)) {
    throw UsageError(fmt::format("--offload none: {} offloads by itself; leave out {}", who(),
                                 to_leave_out(asked, moves_stashes(asked), "--offload")));
  }
}

// Blocks are copied where nothing else is done with stashes, as in Megatron-Core.
void check_block_copies(const Case& asked, const Program& program, int stages) {
  if (asked.offloading.blocks == 0) return;
  const std::vector<bool> all(as_size(stages), true);
  for (const OpKind kind : {OpKind::recompute, OpKind::offload}) {
    const std::optional<int> stage = first_stage(program, kind, all);
    if (!stage) continue;
    throw UsageError(fmt::format(
        "--offload {}: stage {} is {}, and blocks are copied only where stashes are left as they are; "
        "leave out one of the two",
        print(asked.offloading), *stage,
        kind == OpKind::recompute ? "recomputed" : "copied to the host as a whole"));
  }
}

// With what is asked to happen to stashes, beside what the program says itself.
Program with_stashes(const Case& asked, const Layout& layout, Program program) {
  check_none(asked, layout, program);
  const std::vector<StageRecomputation> rebuilt =
      by_stage(asked.recomputation, asked.model, layout.plan.partition);
  if (!rebuilt.empty()) {
    std::vector<bool> recomputed;
    for (const StageRecomputation& stage : rebuilt) {
      recomputed.push_back(stage.rebuild != Rebuild::none);
    }
    program = add_recompute(std::move(program), recomputed);
  }
  if (asked.recomputation.start) program.settings.recompute = *asked.recomputation.start;
  const std::vector<bool> copied = by_stage(asked.offloading, layout.plan.partition.stages);
  check_block_copies(asked, program, layout.plan.partition.stages);
  if (copied.empty()) return program;
  return add_offload(std::move(program), copied, asked.offloading.ahead);
}

void check_step_sums(const Case& asked, const Layout& layout, const Costs& costs, int steps) {
  const std::int64_t chunks =
      std::int64_t{asked.microbatches} * layout.sequence_chunks * asked.pipelines();
  check_sums(costs, layout.placement, chunks * steps, steps);
}

}  // namespace

bool repeats(const Case& asked) {
  if (!asked.program || asked.program->steps != 1 ||
      asked.program->settings.weights != WeightRule::flush) {
    return false;
  }
  const Program& program = *asked.program;
  const auto evenly = [&](const StagePlace& place) {
    return as_size(program.microbatches) % place.replicas.size() == 0;
  };
  return std::all_of(program.placement.stage.begin(), program.placement.stage.end(), evenly);
}

namespace {

// The devices of the first pipeline, each as slow as the slowest of its rank in all pipelines.
Cluster slowest_pipeline(const Case& asked) {
  Cluster cluster = asked.cluster;
  const std::size_t devices = cluster.devices.size() / as_size(asked.pipelines());
  for (std::size_t d = devices; d < cluster.devices.size(); ++d) {
    Device& slowest = cluster.devices[d % devices];
    const Rates here = rates_of(slowest);
    const Rates other = rates_of(cluster.devices[d]);
    slowest.rate = std::min(here.matrix, other.matrix);
    slowest.memory_rate = std::min(here.memory, other.memory);
  }
  return first_devices(std::move(cluster), static_cast<int>(devices));
}

std::string schedule_of(const Case& asked) {
  return asked.program ? asked.program->schedule : spelled(asked.spec);
}

bool is_spread(const Case& asked) {
  return !asked.program && vocabulary_barriers(asked.spec.knobs) != VocabularyBarriers::whole;
}

// A program's text does not say that its last stages are shares of a head.
void refuse_shares(const Case& asked, const std::vector<EdgeCosts>& edges) {
  if (!asked.program) return;
  const std::vector<StageEdge>& given = asked.program->edges;
  const bool same = std::equal(given.begin(), given.end(), edges.begin(), edges.end(),
                               [](StageEdge a, const EdgeCosts& b) { return a == b.edge; });
  if (same) return;
  const int devices = static_cast<int>(asked.program->devices.size());
  for (const auto& [barriers, word] : {std::pair(VocabularyBarriers::one, "one_barrier"),
                                       std::pair(VocabularyBarriers::two, "two_barriers")}) {
    if (given != spread_edges(devices, barriers)) continue;
    throw UsageError(fmt::format(
        "{}: its stages are connected as those of a vocabulary that all devices share, which a "
        "program cannot say of a model; take --schedule 1f1b:vocabulary={}",
        schedule_of(asked), word));
  }
}

// Only make_case() gives slices lengths of their own.
void check_slice_lengths(const Case& asked) {
  if (asked.program || !asked.slice_lengths.empty()) return;
  const auto how = asked.spec.knobs.find("slices");
  if (how == asked.spec.knobs.end() || how->second == "even" || !asked.kinds.empty()) return;
  throw UsageError(fmt::format(
      "{}: only slices of a language model, priced by their kernels, can have other lengths than "
      "equal ones; take slices=even",
      schedule_of(asked)));
}

void check_chunks(const Case& asked, int chunks) {
  if (chunks <= 1) return;
  if (asked.model.sample == "image") {
    throw UsageError(fmt::format("{} cuts sequences into chunks, but a sample of {} is an image",
                                 schedule_of(asked), asked.model.name));
  }
  if (!asked.slices_refused.empty()) {
    throw UsageError(
        fmt::format("{} cuts sequences: {}", schedule_of(asked), asked.slices_refused));
  }
  check_slice_lengths(asked);
  if (asked.offloading.any() && !asked.kinds.empty()) {
    throw UsageError(fmt::format(
        "{} cuts sequences: --offload would take keys and values to the host that later chunks "
        "attend to, which is not priced; leave it out, or take a schedule that does not cut them",
        schedule_of(asked)));
  }
  if (asked.model.tokens == 0 || !asked.slice_lengths.empty()) return;
  try {
    check_slices(asked.model.name, asked.model.tokens, asked.model.sharding, chunks);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{} cuts sequences: {}", schedule_of(asked), error.what()));
  }
}

// The pipeline is cut as asked; each share of a vocabulary behind it is a stage, and the loss.
PartitionPlan cut_before_shares(const Case& asked, const PartitionRequest& request) {
  const int beside = request.stages - static_cast<int>(request.cluster.devices.size());
  if (!asked.shares_refused.empty()) throw UsageError(asked.shares_refused);
  if (!is_spread(asked) || asked.model.layers.size() <= as_size(beside)) {
    return partition(asked.partition, request);
  }
  Model pipeline = asked.model;
  pipeline.layers.resize(pipeline.layers.size() - as_size(beside));
  std::erase_if(pipeline.edges,
                [&](LayerEdge edge) { return as_size(edge.to) >= pipeline.layers.size(); });
  const PartitionRequest of_pipeline{pipeline,
                                     request.cluster,
                                     request.stages - beside,
                                     false,
                                     "",
                                     {},
                                     {request.apart.begin(), request.apart.end() - beside},
                                     {request.placed.begin(), request.placed.end() - beside}};
  PartitionPlan plan = partition(asked.partition, of_pipeline);
  for (int i = 0; i < beside; ++i) {
    plan.partition.stage_of.push_back(plan.partition.stages++);
    plan.replicas.push_back(1);
  }
  return plan;
}

// The layout of one pipeline.
Layout lay_out_one(const Case& asked) {
  Layout layout;
  const int devices = static_cast<int>(asked.cluster.devices.size());
  if (asked.program) {
    check_given(asked);
    layout.placement = asked.program->placement;
    layout.sequence_chunks = asked.program->settings.sequence_chunks;
    check_chunks(asked, layout.sequence_chunks);
    PartitionRequest request{asked.model, asked.cluster, asked.program->stages(), false, "", {}};
    for (const StagePlace& place : layout.placement.stage) {
      request.replicas.push_back(static_cast<int>(place.replicas.size()));
    }
    // A placement in which every device has one stage; else (V shapes) the cut goes by the first.
    const int placed = std::accumulate(request.replicas.begin(), request.replicas.end(), 0);
    if (placed != devices) request.replicas.clear();
    for (const StagePlace& place : layout.placement.stage) request.apart.push_back(place.apart());
    request.placed = replicas_of(layout.placement);
    check_encoder_places(asked, schedule_of(asked), layout.placement, devices);
    layout.plan = asked.encoder_stages > 0 ? cut_behind_encoder(asked, request)
                                           : partition(asked.partition, request);
    return layout;
  }
  if (asked.weights == WeightRule::flush &&
      asked.spec.scheduler->synchrony == Synchrony::asynchronous) {
    throw UsageError(fmt::format(
        "{} does not wait between steps, so its weights cannot be flush; take stash or latest",
        asked.spec.scheduler->name));
  }
  if (asked.spec.scheduler->assign != nullptr) {
    check_encoder_places(asked, schedule_of(asked), {}, devices);
    return assigned(asked);
  }
  layout.knobs = asked.spec.knobs;
  const Scheduler& scheduler = *asked.spec.scheduler;
  if (const auto chunks = layout.knobs.find("sequence_chunks"); chunks != layout.knobs.end()) {
    layout.sequence_chunks = std::stoi(chunks->second);
    if (std::int64_t{asked.microbatches} * layout.sequence_chunks > most_forwards) {
      refuse_forwards(fmt::format("{} micro-batches × {} sequence_chunks", asked.microbatches,
                                  layout.sequence_chunks),
                      static_cast<double>(asked.microbatches) * layout.sequence_chunks,
                      "micro-batches or chunks");
    }
    check_chunks(asked, layout.sequence_chunks);
  }
  layout.placement = scheduler.place(devices, layout.knobs);
  const auto replicas = layout.knobs.find("replicas");
  const bool free = replicas != layout.knobs.end() && replicas->second == "straight";
  // Devices of a stage whose roles are apart are not counted one after another; its F's speed is
  // taken for the cut.
  PartitionRequest request{asked.model, asked.cluster, layout.placement.stages(), free, "", {}};
  if (replicas != layout.knobs.end() && !free) {
    for (const StagePlace& place : layout.placement.stage) {
      request.replicas.push_back(static_cast<int>(place.replicas.size()));
    }
  }
  for (const StagePlace& place : layout.placement.stage) request.apart.push_back(place.apart());
  request.placed = replicas_of(layout.placement);
  if (asked.encoder_stages > 0 && !is_spread(asked)) {
    check_encoder_places(asked, schedule_of(asked), layout.placement, devices);
    layout.plan = cut_behind_encoder(asked, request);
  } else {
    layout.plan = cut_before_shares(asked, request);
  }
  const auto& chosen = layout.plan.replicas;
  if (free && std::any_of(chosen.begin(), chosen.end(), [](int r) { return r != 1; })) {
    std::string text;
    for (const int count : chosen) text += fmt::format("{}{}", text.empty() ? "" : "-", count);
    replicas->second = text;
    layout.placement = scheduler.place(devices, layout.knobs);
  }
  for (std::size_t s = 0; s < layout.plan.devices.size(); ++s) {
    layout.placement.stage[s].replicas = layout.plan.devices[s];  // a stage that spans machines
  }
  if (layout.placement.stages() != layout.plan.partition.stages) {
    throw UsageError(fmt::format(
        "the partition \"{}\" makes {} stages, but {} on {} devices needs {}", asked.partition,
        layout.plan.partition.stages, scheduler.name, devices, layout.placement.stages()));
  }
  return layout;
}

// Stage s of pipeline r is on devices r × devices further.
Placement placed_side_by_side(const Placement& pipeline, int devices, int pipelines) {
  Placement all = pipeline;
  for (StagePlace& place : all.stage) {
    const std::vector<int> one = place.replicas;
    place.replicas.clear();
    for (const int device : one) {
      for (int r = 0; r < pipelines; ++r) place.replicas.push_back(r * devices + device);
    }
  }
  return all;
}

}  // namespace

Layout lay_out(const Case& asked) {
  if (asked.pipelines() == 1) {
    Layout layout = lay_out_one(asked);
    layout.pipeline = layout.placement;
    return layout;
  }
  Case one = asked;
  one.cluster = slowest_pipeline(asked);
  one.ranked = nullptr;
  Layout layout = lay_out_one(one);
  layout.pipeline = layout.placement;
  layout.placement = placed_side_by_side(
      layout.pipeline, static_cast<int>(one.cluster.devices.size()), asked.pipelines());
  return layout;
}

Layout checked_layout(const Case& asked) {
  check_magnitudes(asked);
  Layout layout = lay_out(asked);
  // Every chunk would exchange weights or gradients, which neither divides nor hides as its
  // compute.
  const Degrees degrees = asked.ranked ? asked.ranked->grid().degrees() : Degrees{};
  if (layout.sequence_chunks > 1 && reduces_in_every_backward(degrees)) {
    throw UsageError(fmt::format(
        "{} cuts sequences into {} chunks, and under --zero {} each of them {}, which is not "
        "priced; take --zero-every step, or another schedule",
        schedule_of(asked), layout.sequence_chunks, name(degrees.zero),
        degrees.zero == Zero::weights ? "gathers the weights anew" : "reduces the gradients"));
  }
  check(layout.plan.partition, asked.model);
  return layout;
}

int microbatches_of(const Case& asked, const Layout& layout) {
  const int in_one =
      asked.program ? asked.program->microbatches : asked.microbatches * layout.sequence_chunks;
  return in_one * asked.pipelines();
}

namespace {

// As the ranks exchange it, of what `model` says of an op.
Model exchanged(const Case& asked, const Model& model, const Partition& partition,
                const Placement& placement) {
  Degrees undivided = asked.ranked->grid().degrees();
  undivided.zero = Zero::none;
  return held_on(with_state(model, undivided), partition, placement);
}

}  // namespace

Model exchanged_model(const Case& asked, const Partition& partition, const Placement& placement) {
  return exchanged(asked, asked.slice ? *asked.slice : asked.model, partition, placement);
}

Time time_alone(const Case& asked, const Program& program, const Partition& partition,
                std::int64_t microbatches, std::int64_t updates) {
  const auto of_all = [&](const Model& model, std::int64_t count, std::int64_t times) {
    return time_on_one_device(model, asked.cluster, program, partition, count, times);
  };
  // Micro-batches that differ, with the updates of `model`.
  const auto alone = [&](const Model& model) {
    if (asked.slice || (asked.kinds.empty() && program.settings.costs.empty())) {
      return of_all(model, microbatches, updates);
    }
    const Time once = of_all(model, microbatches, 0);
    const double factor = asked.mean_of([&](const Model& one) {
      return to_seconds(&one == &asked.model ? once : of_all(one, microbatches, 0));
    });
    return of_all(model, microbatches, updates) - once + from_seconds(factor);
  };
  if (!asked.ranked) return alone(asked.model);
  Degrees own = asked.ranked->grid().degrees();
  if (own.zero == Zero::none || (own.context == 1 && !own.folded())) return alone(asked.model);
  own.data = 1;
  own.shard_group.ranks = std::gcd(own.shard_group.ranks, own.context);
  // Those that its ranks can hold.
  own.expert = std::gcd(own.expert, own.tensor * own.context / own.expert_tensor_ranks());
  return alone(with_state(asked.model, own));
}

namespace {

// Costs of micro-batches that are all as `model` says.
Costs costs_of_all(const Case& asked, const Layout& layout, const Model& model) {
  const Partition& cut = layout.plan.partition;
  const Placement& placement = layout.placement;
  const auto summed = [&](const Model& held) {
    return asked.offloading.blocks > 0
               ? stage_costs_with_copies(held, cut, placement, asked.cluster,
                                         asked.offloading.blocks)
               : stage_costs(held, cut, placement, asked.cluster, asked.recomputation);
  };
  Costs costs;
  if (asked.ranked) {
    const Degrees& degrees = asked.ranked->grid().degrees();
    costs = asked.ranked->priced(summed(held_on(with_state(model, degrees), cut, placement)),
                                 exchanged(asked, model, cut, placement), cut, placement,
                                 asked.recomputation);
  } else {
    costs = has_tied_weights(model) ? summed(held_on(model, cut, placement)) : summed(model);
  }
  refuse_shares(asked, costs.edges);
  if (is_spread(asked)) {
    exchange_in_rings(costs, static_cast<int>(asked.cluster.devices.size()) / asked.pipelines());
  }
  if (asked.offloading.blocks > 0) {
    add_copy_waits(costs, model, cut, placement, asked.cluster, asked.offloading.blocks);
  }
  return costs;
}

}  // namespace

namespace {

// Only make_case() prices what a program says of tokens.
void check_tokens_priced(const Case& asked) {
  if (!asked.program) return;
  const ProgramSettings& settings = asked.program->settings;
  if (!settings.lengths.empty() && asked.kinds.empty()) {
    throw UsageError(
        "lengths: the program says how many tokens its micro-batches have, which are not priced "
        "here; leave the line out, or give \"costs:\" in its place");
  }
  if (!settings.slices.empty() && asked.slice_lengths.empty()) {
    throw UsageError(
        "slices: the program says how many tokens the pieces of a sequence have, which needs a "
        "language model whose slices are priced by their kernels (model:…); leave the line out");
  }
}

}  // namespace

Costs costs_of(const Case& asked, const Layout& layout) {
  check_tokens_priced(asked);
  std::optional<Model> share;
  if (layout.sequence_chunks > 1 && !asked.slice) {
    share = equal_share(asked.model, layout.sequence_chunks);
  }
  const Model& mean = share ? *share : layout.sequence_chunks == 1 ? asked.model : *asked.slice;
  Costs costs = costs_of_all(asked, layout, mean);
  const int pipelines = asked.pipelines();
  if (!asked.kinds.empty()) {
    std::vector<Costs> kinds;
    for (const auto& kind : asked.kinds) kinds.push_back(costs_of_all(asked, layout, *kind));
    costs = with_kinds(std::move(costs), kinds, side_by_side(asked.kind_of, pipelines));
  }
  const std::vector<double>& factors =
      asked.program ? asked.program->settings.costs : asked.factors;
  costs = scaled_by_microbatch(std::move(costs), side_by_side(factors, pipelines));
  costs.sharing = asked.sharing;
  return costs;
}

void check_length(const Case& asked, const Layout& layout, const Costs& costs, int steps) {
  check_step_sums(asked, layout, costs, steps);
  // A network of many devices takes long to copy, and is not asked for.
  Problem problem;
  problem.placement = layout.pipeline;
  problem.costs.edges = costs.edges;
  problem.microbatches = asked.microbatches * layout.sequence_chunks;
  problem.steps = steps;
  problem.devices = device_names(asked.cluster);
  problem.devices.resize(problem.devices.size() / as_size(asked.pipelines()));
  blank_program(problem, "", WeightRule::flush);
}

namespace {

Program one_program_of(const Case& asked, const Layout& layout, const Costs& costs, int steps) {
  if (asked.program) {
    Program program = repeats(asked) ? repeated(*asked.program, steps) : *asked.program;
    check_sums(costs, program.placement, program.total_microbatches(), program.steps);
    if (asked.messages) program.settings.messages = *asked.messages;
    return with_stashes(asked, layout, std::move(program));
  }
  check_step_sums(asked, layout, costs, steps);  // before the scheduler adds anything up
  Program program = asked.spec.scheduler->schedule(problem_of(asked, layout, costs, steps));
  if (asked.weights) program.settings.weights = *asked.weights;
  program.settings.costs = asked.factors;
  program.settings.lengths = asked.lengths;
  program.settings.slices = asked.slice_lengths;
  if (asked.messages) program.settings.messages = *asked.messages;
  return with_stashes(asked, layout, std::move(program));
}

// A frozen encoder has no stash that R could make again.
void check_frozen(const Case& asked, const Layout& layout, const Program& program) {
  const EncoderLayers& encoder = asked.model.encoder;
  if (!encoder.frozen) return;
  const int first = nth(layout.plan.partition.stage_of, encoder.count);
  for (const std::vector<Op>& ops : program.ops) {
    for (const Op op : ops) {
      if (op.kind != OpKind::recompute || op.stage >= first) continue;
      throw UsageError(fmt::format(
          "--frozen-encoder: stage {} keeps nothing for a backward, so that there is nothing to "
          "recompute; take --recompute full@{}-",
          op.stage, first));
    }
  }
}

}  // namespace

Program program_of(const Case& asked, const Layout& layout, const Costs& costs, int steps) {
  Program program = one_program_of(asked, layout, costs, steps);
  check_frozen(asked, layout, program);
  if (!asked.ranked) return program;
  const Degrees& degrees = asked.ranked->grid().degrees();
  const int stated = program.settings.data_ranks;
  if (stated > 1 && stated != degrees.data * degrees.context) {
    throw UsageError(fmt::format(
        "the program says \"data_ranks: {}\", and --dp × --cp is {}; give --dp {}, or change the "
        "line",
        stated, degrees.data * degrees.context, stated));
  }
  if (reduces_once(degrees)) {
    program.settings.data_ranks = asked.ranked->data_ranks();
  }
  if (asked.pipelines() == 1) return program;
  return replicated(program, asked.pipelines(), device_names(asked.cluster));
}

}  // namespace stageline
