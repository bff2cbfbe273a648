// The pass that writes OFFLOAD and PREFETCH: a stash waits for its backward in the host's memory.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/lower/passes.hpp"
#include "sim/lower/rewriting.hpp"
#include "sim/stash_readers.hpp"

namespace stageline {
namespace {

bool is_compute_op(Op op) {
  return lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::update;
}

// The stages whose stashes are to be copied: those marked that have no copies of their own.
std::vector<bool> stages_to_copy(const Program& program, std::vector<bool> stages) {
  const std::vector<bool> offloaded = stages_with(program, OpKind::offload);
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s] = stages[s] && !offloaded[s];
  return stages;
}

// Writes the copies of one device. Its compute ops are counted from 0, a pair as one.
class DeviceCopies {
 public:
  DeviceCopies(const Program& program, const std::vector<bool>& stages, int device)
      : program_(program),
        stages_(stages),
        device_(device),
        made_(stages.size()),
        copied_(stages.size()) {}

  std::vector<Op> write(int ahead) {
    const std::vector<Op>& list = nth(program_.ops, device_);
    find(list, ahead);
    std::int64_t number = 0;
    std::size_t next = 0;
    return rebuilt(list, [&](const Op* first, const Op* last, std::vector<Op>& out) {
      const bool counts = is_compute_op(*first);
      for (; counts && next < due_.size() && due_[next].before == number; ++next) {
        const Op reader = due_[next].reader;
        out.push_back(op_of(OpKind::prefetch, reader.stage, reader.microbatch,
                            stash_reader(place(reader), device_)));
      }
      out.insert(out.end(), first, last);
      for (const Op* op = first; op != last; ++op) {
        if (op->kind != OpKind::forward || !stages_[op->stage]) continue;
        if (!place(*op).apart() && !copied_[op->stage][op->microbatch]) continue;
        out.push_back(op_of(OpKind::offload, op->stage, op->microbatch));
        any_ = true;
      }
      if (counts) ++number;
    });
  }

  bool any() const { return any_; }

 private:
  static constexpr std::int64_t unknown = -1;
  static constexpr std::int64_t read = -2;

  // A stash that comes back before the compute op of that number.
  struct Due {
    std::int64_t before = 0;
    Op reader;
  };

  const StagePlace& place(Op op) const { return program_.placement.stage[op.stage]; }

  // In the order of their readers, and so of the ops before which they are issued.
  void find(const std::vector<Op>& list, int ahead) {
    std::int64_t number = 0;
    for (const Op op : list) {
      if (!is_compute_op(op)) continue;
      if (stages_[op.stage]) find_copy(op, number, ahead);
      if (!op.overlapped) ++number;
    }
  }

  void find_copy(Op op, std::int64_t number, int ahead) {
    std::vector<std::int64_t>& made_here = made_[op.stage];
    if (made_here.empty()) {
      made_here.assign(program_.total_microbatches(), unknown);
      copied_[op.stage].assign(program_.total_microbatches(), false);
    }
    std::int64_t& made = made_here[op.microbatch];
    if (op.kind == OpKind::forward) {
      made = number;
      return;
    }
    if (made == read) return;
    std::int64_t before = number - ahead;
    // All stashes of a stage with split roles leave; others only where another op runs between F
    // and the issue.
    if (place(op).apart()) {
      before = std::max({before, made + 1, due_.empty() ? 0 : due_.back().before});
    } else if (made < 0 || before <= made + 1) {
      made = read;
      return;
    }
    due_.push_back({before, op});
    copied_[op.stage][op.microbatch] = true;
    made = read;
  }

  const Program& program_;
  const std::vector<bool>& stages_;
  int device_;
  // By stage and micro-batch; empty of a stage with no op here.
  std::vector<std::vector<std::int64_t>> made_;  // the number of its F, until its stash is read
  std::vector<std::vector<bool>> copied_;
  std::vector<Due> due_;
  bool any_ = false;
};

}  // namespace

Program add_offload(Program program, const std::vector<bool>& stages, int ahead) {
  const std::vector<bool> wanted = stages_to_copy(program, stages);
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return program;
  bool copies = false;
  std::vector<std::vector<Op>> lists;
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    DeviceCopies device(program, wanted, static_cast<int>(d));
    lists.push_back(device.write(ahead));
    copies = copies || device.any();
  }
  program.ops = std::move(lists);
  if (copies && program.settings.copies == Copies::free) program.settings.copies = Copies::issued;
  return program;
}

}  // namespace stageline
