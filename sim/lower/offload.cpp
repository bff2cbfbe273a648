// The pass that writes OFFLOAD and PREFETCH: a stash waits for its backward in the host's memory.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "sim/errors.hpp"
#include "sim/lower/passes.hpp"
#include "sim/lower/rewriting.hpp"

namespace stageline {
namespace {

bool computes(Op op) { return lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::update; }

// The stages whose stashes are to be copied: those marked that have no copies of their own.
std::vector<bool> stages_to_copy(const Program& program, std::vector<bool> stages) {
  const std::vector<bool> offloaded = stages_with(program, OpKind::offload);
  const std::vector<bool> recomputed = stages_with(program, OpKind::recompute);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (!stages[s]) continue;
    if (offloaded[s]) {
      stages[s] = false;
    } else if (program.placement.stage[s].apart()) {
      throw UsageError(
          fmt::format("{}: stage {} runs its backward on another device than its forward and sends "
                      "its stash there, so the stash cannot be offloaded",
                      program.schedule, s));
    } else if (recomputed[s]) {
      throw UsageError(
          fmt::format("{}: stage {} is recomputed, and keeps no stash that could be offloaded; a "
                      "stage is either recomputed or offloaded, not both",
                      program.schedule, s));
    }
  }
  return stages;
}

// Writes the copies of one device. Its compute ops are counted from 0, a pair as one.
class DeviceCopies {
 public:
  DeviceCopies(const Program& program, const std::vector<bool>& stages)
      : stages_(stages),
        microbatches_(program.total_microbatches()),
        made_(stages.size()),
        copied_(stages.size()) {}

  std::vector<Op> write(const std::vector<Op>& list, int ahead) {
    find(list, ahead);
    std::int64_t number = 0;
    std::size_t next = 0;
    return rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
      const bool counts = computes(*first);
      for (; counts && next < due_.size() && due_[next].before == number; ++next) {
        out.push_back(
            op_of(OpKind::prefetch, due_[next].reader.stage, due_[next].reader.microbatch));
      }
      out.insert(out.end(), first, last);
      for (const Op* op = first; op != last; ++op) {
        if (op->kind != OpKind::forward || !stages_[op->stage]) continue;
        if (!copied_[op->stage][op->microbatch]) continue;
        out.push_back(op_of(OpKind::offload, op->stage, op->microbatch));
      }
      if (counts) ++number;
    });
  }

  bool any() const { return !due_.empty(); }

 private:
  static constexpr std::int64_t unknown = -1;
  static constexpr std::int64_t read = -2;

  // A stash that comes back before the compute op of that number.
  struct Due {
    std::int64_t before = 0;
    Op reader;
  };

  // In the order of their readers, and so of the ops before which they are issued.
  void find(const std::vector<Op>& list, int ahead) {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Op op = list[i];
      if (!computes(op)) continue;
      std::vector<std::int64_t>& made_here = made_[op.stage];
      if (stages_[op.stage] && op.kind == OpKind::forward) {
        if (made_here.empty()) {
          made_here.assign(microbatches_, unknown);
          copied_[op.stage].assign(microbatches_, false);
        }
        made_here[op.microbatch] = number;
      }
      if (class_of(op.kind) == OpClass::backward && !made_here.empty()) {
        std::int64_t& made = made_here[op.microbatch];
        const std::int64_t before = number - ahead;
        // Another op has run between F and the issue.
        if (made >= 0 && before > made + 1) {
          due_.push_back({before, op});
          copied_[op.stage][op.microbatch] = true;
        }
        made = read;
      }
      if (!op.overlapped) ++number;
    }
  }

  const std::vector<bool>& stages_;
  std::uint32_t microbatches_;
  // By stage and micro-batch; of a stage with no F here, empty.
  std::vector<std::vector<std::int64_t>> made_;  // the number of its F, until its stash is read
  std::vector<std::vector<bool>> copied_;
  std::vector<Due> due_;
};

}  // namespace

Program add_offload(Program program, const std::vector<bool>& stages, int ahead) {
  const std::vector<bool> wanted = stages_to_copy(program, stages);
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return program;
  bool copies = false;
  for (auto& list : program.ops) {
    DeviceCopies device(program, wanted);
    list = device.write(list, ahead);
    copies = copies || device.any();
  }
  if (copies && program.settings.copies == Copies::free) program.settings.copies = Copies::issued;
  return program;
}

}  // namespace stageline
