// What the tests of PyTorch's schedule CSV share.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "traces/programs.hpp"

namespace stageline::test {

/// What the scheduler has each device compute, equal stages, one step.
inline Program written(const ScheduleSpec& spec, int devices, int microbatches) {
  const int stages = stages_for(spec, devices);
  const Costs costs = uniform_costs(stages, devices, Time{1}, Time{1}, Time{1});
  Program program = spec.scheduler->schedule(problem_for(spec, devices, costs, microbatches));
  for (auto& list : program.ops) {
    std::erase_if(list, [](Op op) { return op.kind == OpKind::update || cargo_of(op.kind); });
  }
  return program;
}

/// Whether the CSV is to hold it, by the format's own words: each stage on one rank, a chain, one
/// step, F, I, W and B alone, an I before each W.
inline bool fits_pytorch(const Program& program) {
  for (const StagePlace& place : program.placement.stage) {
    if (place.replicas.size() != 1 || !place.input_grad.empty() || !place.weight_grad.empty()) {
      return false;
    }
  }
  for (const auto* const numbers : {&program.settings.delay, &program.settings.window}) {
    if (!numbers->empty()) return false;
  }
  if (program.settings.sequence_chunks != 1) return false;
  if (program.settings.clock != Clock::free || program.edges != chain_edges(program.stages()))
    return false;
  for (const auto& list : program.ops) {
    if (list.empty()) return false;
    std::set<std::pair<int, std::uint32_t>> input_grads;
    for (const Op op : list) {
      const std::pair<int, std::uint32_t> work{op.stage, op.microbatch};
      if (op.kind == OpKind::input_grad) input_grads.insert(work);
      if (op.kind == OpKind::weight_grad && input_grads.count(work) == 0) return false;
      if (op.kind != OpKind::forward && op.kind != OpKind::input_grad &&
          op.kind != OpKind::weight_grad && op.kind != OpKind::backward) {
        return false;
      }
    }
  }
  return program.steps == 1;
}

/// As it comes back: the CSV knows no name, and one way with weights; how copies go says nothing
/// where none are made.
inline Program as_read(Program program) {
  program.schedule.clear();
  program.settings.weights = WeightRule::flush;
  program.settings.correction = "none";
  program.settings.copies = Copies::free;
  return program;
}

}  // namespace stageline::test
