// The pass that writes R: the forward again, before the backward that reads what it rebuilds.
#include <cstdint>

#include "sim/lower/passes.hpp"
#include "sim/lower/rewriting.hpp"
#include "sim/stash_readers.hpp"

namespace stageline {
namespace {

// The micro-batches that have an R, in the stages that are marked.
class RecomputeOps {
 public:
  RecomputeOps(const Program& program, const std::vector<bool>& stages)
      : placement_(program.placement), done_(stages.size()) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (!stages[s]) continue;
      done_[s].resize(program.total_microbatches() * readers(s));
    }
    for (const auto& list : program.ops) {
      for (const Op op : list) {
        if (op.kind == OpKind::recompute && stages[op.stage]) mark(op);
      }
    }
  }

  // The R that the op on that device reads, or would read.
  Op before(Op reader, int device) const {
    const int part = stash_reader(placement_.stage[reader.stage], device);
    return op_of(OpKind::recompute, reader.stage, reader.microbatch, part);
  }

  // Whether it was not there.
  bool mark(Op again) {
    auto done = done_[again.stage].begin() +
                static_cast<std::ptrdiff_t>(again.microbatch * readers(again.stage) + again.part);
    const bool is_new = !*done;
    *done = true;
    return is_new;
  }

 private:
  std::size_t readers(std::size_t stage) const {
    return as_size(stash_readers(placement_.stage[stage]));
  }

  const Placement& placement_;
  std::vector<std::vector<bool>> done_;  // by stage; micro-batch and reader
};

}  // namespace

Program add_recompute(Program program, const std::vector<bool>& stages) {
  RecomputeOps recomputes(program, stages);
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    program.ops[d] =
        rebuilt(program.ops[d], [&](const Op* first, const Op* last, std::vector<Op>& out) {
          for (const Op* op = first; op != last; ++op) {
            if (class_of(op->kind) != OpClass::backward || !stages[op->stage]) continue;
            const Op again = recomputes.before(*op, static_cast<int>(d));
            if (recomputes.mark(again)) out.push_back(again);
          }
          out.insert(out.end(), first, last);
        });
  }
  return program;
}

}  // namespace stageline
