// The pass that writes R: the forward again, before the backward that reads what it rebuilds.
#include <fmt/core.h>

#include "sim/errors.hpp"
#include "sim/lower/passes.hpp"
#include "sim/lower/rewriting.hpp"

namespace stageline {
namespace {

void check_recomputable(const Program& program, const std::vector<bool>& stages) {
  const std::vector<bool> offloaded = stages_with(program, OpKind::offload);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!stages[s]) continue;
    if (program.placement.stage[s].apart()) {
      throw UsageError(
          fmt::format("{}: stage {} runs its backward on another device than its forward, so it "
                      "cannot be recomputed",
                      program.schedule, s));
    }
    if (offloaded[s]) {
      throw UsageError(
          fmt::format("{}: the stash of stage {} is offloaded to the host; a stage is either "
                      "recomputed or offloaded, not both",
                      program.schedule, s));
    }
  }
}

}  // namespace

Program add_recompute(Program program, const std::vector<bool>& stages) {
  check_recomputable(program, stages);
  // By stage and micro-batch: it has its R.
  std::vector<std::vector<bool>> done(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s]) done[s].resize(program.total_microbatches());
  }
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (op.kind == OpKind::recompute && stages[op.stage]) done[op.stage][op.microbatch] = true;
    }
  }
  for (auto& list : program.ops) {
    list = rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
      for (const Op* op = first; op != last; ++op) {
        if (class_of(op->kind) != OpClass::backward || !stages[op->stage]) continue;
        if (done[op->stage][op->microbatch]) continue;
        done[op->stage][op->microbatch] = true;
        out.push_back(op_of(OpKind::recompute, op->stage, op->microbatch));
      }
      out.insert(out.end(), first, last);
    });
  }
  return program;
}

}  // namespace stageline
