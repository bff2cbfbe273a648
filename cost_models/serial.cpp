#include "cost_models/serial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cost_models/tied_weights.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/rates.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

// Picoseconds of work at rate 1, and the part of it that is bound by memory.
struct SerialWork {
  Wide all = 0;
  Wide memory = 0;

  void add(const Layer& layer, Time time, std::int64_t times) {
    const Wide more = static_cast<Wide>(time.count()) * times;
    all += more;
    if (layer.memory_bound) memory += more;
  }
};

double picoseconds_of(const SerialWork& work, Rates rates) {
  if (rates.matrix == rates.memory) return static_cast<double>(work.all) / rates.matrix;
  return static_cast<double>(work.all - work.memory) / rates.matrix +
         static_cast<double>(work.memory) / rates.memory;
}

// The least of these ways to do the work, on the device that is fastest at it; rounded once.
Time on_fastest(const Cluster& cluster, const std::vector<SerialWork>& ways,
                std::int64_t microbatches) {
  double least = std::numeric_limits<double>::infinity();
  const SerialWork* way = &ways.front();
  Rates rates;
  for (const SerialWork& work : ways) {
    for (const Device& device : cluster.devices) {
      const double time = picoseconds_of(work, rates_of(device));
      if (time > least || (time == least && work.all >= way->all)) continue;
      least = time;
      way = &work;
      rates = rates_of(device);
    }
  }
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  // In floating point, 2^63 itself must not pass.
  if (way->all > most || least >= static_cast<double>(most)) {
    throw UsageError(
        fmt::format("{} micro-batches on one device would take longer than 106 days, the most that "
                    "picoseconds in 64 bits can say; ask for fewer",
                    microbatches));
  }
  if (rates == Rates{}) return Time{static_cast<std::int64_t>(way->all)};
  return Time{std::llround(least)};
}

// Optimizer steps are bound by memory.
void add_updates(SerialWork& work, const Model& model, std::int64_t updates) {
  const Wide all = static_cast<Wide>(update_once(model).count()) * updates;
  work.all += all;
  work.memory += all;
}

// Every layer's F and B.
SerialWork whole_work(const Model& model, std::int64_t microbatches, std::int64_t updates) {
  forward_backward(model);  // throws where a micro-batch is too long
  SerialWork work;
  for (const Layer& layer : model.layers) {
    work.add(layer, layer.forward + layer.backward, microbatches);
  }
  add_updates(work, model, updates);
  return work;
}

// How often the program does a pass of each stage.
struct Passes {
  std::vector<std::int64_t> backward;
  std::vector<std::int64_t> input_grad;
  std::vector<std::int64_t> weight_grad;
};

Passes passes_of(const Program& program) {
  const std::vector<std::int64_t> none(as_size(program.stages()));
  Passes passes{none, none, none};
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (op.kind == OpKind::backward) ++passes.backward[op.stage];
      if (op.kind == OpKind::input_grad && op.part == 0) ++passes.input_grad[op.stage];
      if (op.kind == OpKind::weight_grad) ++passes.weight_grad[op.stage];
    }
  }
  return passes;
}

}  // namespace

Time time_on_one_device(const Model& model, const Cluster& cluster, std::int64_t microbatches,
                        std::int64_t updates) {
  return on_fastest(cluster, {whole_work(model, microbatches, updates)}, microbatches);
}

Time time_on_one_device(const Model& model, const Cluster& cluster, const Program& program,
                        const Partition& partition, std::int64_t microbatches,
                        std::int64_t updates) {
  const Passes passes = passes_of(program);
  const std::int64_t all = program.total_microbatches();
  SerialWork own;  // of the whole program
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    const auto stage = as_size(partition.stage_of[l]);
    own.add(layer, layer.forward, all);
    own.add(layer, layer.backward, passes.backward[stage]);
    own.add(layer, layer.input_grad, passes.input_grad[stage]);
    // A measured lone W may be shorter, by the noise of its clock.
    own.add(layer, std::min(layer.weight_grad, layer.weight_grad_alone()),
            passes.weight_grad[stage]);
  }
  own.all = own.all * microbatches / all;
  own.memory = own.memory * microbatches / all;
  add_updates(own, model, updates);
  return on_fastest(cluster, {whole_work(model, microbatches, updates), own}, microbatches);
}

}  // namespace stageline
