// Derives layer costs from the ranges of a run.
#include "traces/kineto/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "sim/analysis/kind_times.hpp"
#include "sim/analysis/statistics.hpp"

namespace stageline {
namespace {

struct Measured {
  Time time{};
  Time spread{};
  std::size_t count = 0;
  bool shared = false;  // measured in overlapped pairs only
};

std::map<std::pair<int, OpKind>, Measured> medians_of(const KinetoRun& run) {
  std::map<std::pair<int, OpKind>, KindTimes> all;
  for (const KindTimes& kind : kind_times(run.timeline, run.estimated)) {
    all.emplace(std::pair(kind.stage, kind.kind), kind);
  }
  for (const Timeline& replica : run.replicas) {
    for (const KindTimes& kind : kind_times(replica, {})) {
      KindTimes& known = all.emplace(std::pair(kind.stage, kind.kind), KindTimes{}).first->second;
      known.times.insert(known.times.end(), kind.times.begin(), kind.times.end());
    }
  }
  std::map<std::pair<int, OpKind>, Measured> medians;
  for (const auto& [which, kind] : all) {
    medians[which] = {median(kind.times), half_interquartile(kind.times), kind.times.size(),
                      kind.shared};
  }
  return medians;
}

std::string method_of(const KinetoRun& run) {
  const std::string what = run.source == RangeSource::gpu ? "on the GPU"
                           : run.source == RangeSource::cpu
                               ? "on the CPU"
                               : "of LAUNCHING the work, not of the work itself";
  return fmt::format(
      "Medians of the ranges {} over {} micro-batches and {} step{} of a real pipelined run.", what,
      run.program.microbatches, run.program.steps, run.program.steps == 1 ? "" : "s");
}

std::string stages_text(const std::vector<int>& stages, int all) {
  if (static_cast<int>(stages.size()) == all) return "all stages";
  return fmt::format("stage{} {}", stages.size() == 1 ? "" : "s", fmt::join(stages, ", "));
}

}  // namespace

Model kineto_model(const KinetoRun& run, const std::string& name, int batch,
                   const std::string& source) {
  const auto medians = medians_of(run);
  const auto measured = [&](int stage, OpKind kind) {
    const auto at = medians.find({stage, kind});
    return at == medians.end() ? Measured{} : at->second;
  };
  Model model;
  model.name = name;
  model.batch = batch;
  model.bytes_known = false;
  std::vector<int> halved;
  std::vector<int> shared;
  for (int stage = 0; stage < run.program.stages(); ++stage) {
    const Measured f = measured(stage, OpKind::forward);
    const Measured b = measured(stage, OpKind::backward);
    const Measured i = measured(stage, OpKind::input_grad);
    const Measured w = measured(stage, OpKind::weight_grad);
    const Measured u = measured(stage, OpKind::update);
    Layer layer;
    layer.name = fmt::format("stage{}", stage);
    layer.kind = "stage";
    layer.forward = f.time;
    layer.forward_spread = f.spread;
    layer.update = u.time;
    layer.update_spread = u.spread;
    if (w.count > 0) {
      layer.input_grad = i.time;
      layer.input_grad_spread = i.spread;
      layer.weight_grad = w.time;
      layer.weight_grad_spread = w.spread;
    } else {
      layer.input_grad = b.time / 2;
      layer.weight_grad = b.time - layer.input_grad;
      halved.push_back(stage);
    }
    // Halves that were measured by themselves are a better measure of B than pairs are.
    const bool halves = w.count > 0 && !w.shared && !i.shared;
    const bool whole = b.count > 0 && !(b.shared && halves);
    layer.backward = whole ? b.time : layer.input_grad + layer.weight_grad;
    layer.backward_spread = whole ? b.spread : Time{};
    if (f.shared || (whole && b.shared) || i.shared || w.shared) shared.push_back(stage);
    model.layers.push_back(std::move(layer));
  }
  Provenance& from = model.provenance;
  from.origin = Origin::measured;
  from.device = run.accelerator;
  from.method = method_of(run);
  from.software = "PyTorch";
  from.source = fmt::format("PyTorch profiler, {}", source);
  from.date = run.date;
  from.notes = run.notes;
  if (!halved.empty()) {
    from.notes.push_back(fmt::format(
        "{} ran B alone: half of it is taken for I and the rest for W, which is an estimate",
        stages_text(halved, run.program.stages())));
  }
  if (!shared.empty()) {
    from.notes.push_back(
        fmt::format("{} ran some ops in overlapped pairs only: "
                    "such an op gets the time that the other leaves of the pair, or, "
                    "where neither ran outside of pairs, F a third, which is an estimate",
                    stages_text(shared, run.program.stages())));
  }
  from.notes.emplace_back(
      "a profile does not record bytes, so memory and messages' sizes are unknown; "
      "a layer is a stage, which cannot be cut further");
  if (run.program.stages() == 1) {
    from.notes.emplace_back(
        "the run has one stage; --layers divides it into the layers of its model, where the profile "
        "has their modules (with_stack=True) or ranges");
  }
  return model;
}

}  // namespace stageline
