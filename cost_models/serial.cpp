#include "cost_models/serial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/errors.hpp"
#include "sim/index.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

// Picoseconds of work at rate 1, done by the fastest device; rounded once.
Time on_fastest(const Cluster& cluster, Wide work, std::int64_t microbatches) {
  double fastest = 0;
  for (const Device& device : cluster.devices) fastest = std::max(fastest, device.rate);
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  // In floating point, 2^63 itself must not pass.
  if (work > most || static_cast<double>(work) / fastest >= static_cast<double>(most)) {
    throw UsageError(
        fmt::format("{} micro-batches on one device would take longer than 106 days, the most that "
                    "picoseconds in 64 bits can say; ask for fewer",
                    microbatches));
  }
  if (fastest == 1) return Time{static_cast<std::int64_t>(work)};
  return Time{std::llround(static_cast<double>(work) / fastest)};
}

Wide updating(const Model& model, std::int64_t updates) {
  Time once{};
  for (const Layer& layer : model.layers) once += layer.update;
  return static_cast<Wide>(once.count()) * updates;
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
  return on_fastest(
      cluster,
      static_cast<Wide>(forward_backward(model).count()) * microbatches + updating(model, updates),
      microbatches);
}

Time time_on_one_device(const Model& model, const Cluster& cluster, const Program& program,
                        const Partition& partition, std::int64_t microbatches,
                        std::int64_t updates) {
  const Passes passes = passes_of(program);
  const std::int64_t all = program.total_microbatches();
  Wide work = 0;  // of the whole program
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    const auto stage = as_size(partition.stage_of[l]);
    work += static_cast<Wide>(layer.forward.count()) * all +
            static_cast<Wide>(layer.backward.count()) * passes.backward[stage] +
            static_cast<Wide>(layer.input_grad.count()) * passes.input_grad[stage] +
            static_cast<Wide>(layer.weight_grad.count()) * passes.weight_grad[stage];
  }
  const Wide whole = static_cast<Wide>(forward_backward(model).count()) * microbatches;
  return on_fastest(cluster, std::min(whole, work * microbatches / all) + updating(model, updates),
                    microbatches);
}

}  // namespace stageline
