#include "schedulers/parts/paired_stashes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// The stashes of one device that move, in an order of 1F1B with n in flight: those whose number in
// the step, modulo n-2, is one of n-K. Every window of n-2 then has so many. Neither the first
// stash moves nor the one that is read first behind the last F, for which there would be no F to
// bring it back beside.
class MovedStashes {
 public:
  MovedStashes(const std::vector<Op>& list, int devices, int microbatches)
      : microbatches_(microbatches) {
    const auto back =
        std::find_if(list.begin(), list.end(), [](Op op) { return op.kind != OpKind::forward; });
    const std::int64_t in_flight = back - list.begin();
    const std::int64_t away = in_flight - paired_limit(devices);
    if (away <= 0) return;
    behind_last_forward_ = microbatches_ - in_flight + 1;
    const std::int64_t period = in_flight - 2;
    std::vector<std::int64_t> may_move;
    for (std::int64_t m = 1; m < period; ++m) {
      if (m != behind_last_forward_ % period) may_move.push_back(m);
    }
    // 4 devices, an even number of micro-batches: it moves, and comes back late.
    if (may_move.empty()) may_move.push_back(1);
    moves_.resize(as_size(period));
    for (std::int64_t i = 0; i < away; ++i) {
      const auto some = static_cast<std::int64_t>(may_move.size());
      moves_[as_size(may_move[as_size(i * some / away)])] = true;
    }
  }

  bool any() const { return !moves_.empty(); }

  /// The last of a step meets no forward behind it.
  bool has(std::uint32_t microbatch) const {
    const std::int64_t m = in_step(microbatch);
    return any() && m + 1 < microbatches_ && moves_[as_size(m) % moves_.size()];
  }

  /// Whether it comes back when the op before its backward has ended; else when that starts.
  bool is_late(std::uint32_t microbatch) const {
    return in_step(microbatch) == behind_last_forward_;
  }

 private:
  std::int64_t in_step(std::uint32_t microbatch) const { return microbatch % microbatches_; }

  std::int64_t microbatches_;  // of a step
  std::int64_t behind_last_forward_ = -1;
  std::vector<bool> moves_;  // by number in the step, modulo its size; empty: none does
};

// Whether an op, behind `before` in its list, is the first that reads the stash.
bool reads_first(Op op, Op before) {
  if (op.kind == OpKind::recompute) return true;
  return op.kind == OpKind::backward &&
         (before.kind != OpKind::recompute || before.microbatch != op.microbatch);
}

}  // namespace

bool pairs_stashes(const Knobs& knobs) { return knobs.at("stashes") == "paired"; }

Placement paired_placement(int devices) {
  Placement placement = straight_placement(devices);
  for (int r = 0; devices - r > paired_limit(devices); ++r) {
    nth(placement.stage, r).stash_homes = {devices - 1 - r};
  }
  return placement;
}

void move_stashes(Program& program) {
  for (int r = 0; r < program.stages(); ++r) {
    std::vector<int>& homes = nth(program.placement.stage, r).stash_homes;
    if (homes.empty()) continue;
    std::vector<Op>& list = nth(program.ops, r);
    const MovedStashes moved(list, program.stages(), program.microbatches);
    std::vector<Op> with_copies;
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::optional<std::uint32_t> back;  // is read by the op behind this one
      if (i + 1 < list.size() && reads_first(list[i + 1], list[i]) &&
          moved.has(list[i + 1].microbatch)) {
        back = list[i + 1].microbatch;
      }
      if (back && !moved.is_late(*back)) {
        with_copies.push_back(op_of(OpKind::prefetch, r, *back));
      }
      with_copies.push_back(list[i]);
      if (list[i].kind == OpKind::forward && moved.has(list[i].microbatch)) {
        with_copies.push_back(op_of(OpKind::offload, r, list[i].microbatch));
      }
      if (back && moved.is_late(*back)) {
        with_copies.push_back(op_of(OpKind::prefetch, r, *back));
      }
    }
    if (with_copies.size() == list.size()) {
      homes.clear();  // none moves
      continue;
    }
    program.settings.copies = Copies::issued;
    list = std::move(with_copies);
  }
}

}  // namespace stageline
