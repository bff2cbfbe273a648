#include "schedulers/parts/grouped_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::int64_t ops_of_microbatch = 3;  // slots: F, I and W of a chunk

// Slots of one step's ops, of chunks in the order in which forwards take them.
class GroupedSlots {
 public:
  GroupedSlots(int devices, int chunks, Grouping grouping)
      : devices_(devices),
        chunks_(chunks),
        group_(grouping.group),
        apart_(ops_of_microbatch * grouping.in_flight * grouping.group),
        until_shift_(chunks / std::gcd(chunks, grouping.in_flight)) {}

  std::int64_t forward(int device, int chunk, int microbatch) const {
    return chunk_begins(chunk) + microbatch_begins(microbatch) + device;
  }
  /// The chunk counts from the last.
  std::int64_t input_grad(int device, int back, int microbatch) const {
    const std::int64_t follow = devices_ - 1 - device;
    const std::int64_t first = forward(device, chunks_ - 1, 0) + follow + 1 + 2 * follow;
    return first + chunk_begins(back) + microbatch_begins(microbatch);
  }

 private:
  std::int64_t chunk_begins(int chunk) const {
    return apart_ * chunk + ops_of_microbatch * group_ * (chunk / until_shift_);
  }
  std::int64_t microbatch_begins(int microbatch) const {
    const std::int64_t block = ops_of_microbatch * group_ * chunks_;
    return microbatch / group_ * block + ops_of_microbatch * (microbatch % group_);
  }

  int devices_;
  int chunks_;
  std::int64_t group_;
  std::int64_t apart_;
  int until_shift_;  // chunks
};

}  // namespace

Grouping grouping_of(int devices, int group) {
  const int half = (devices + 1) / 2;
  return {group, (half + group - 1) / group};
}

StepLists grouped_order(const Problem& problem, Grouping grouping, bool split) {
  const auto devices = static_cast<int>(problem.devices.size());
  const int chunks = problem.placement.stages() / devices;
  const GroupedSlots slots(devices, chunks, grouping);
  StepLists lists;
  for (int r = 0; r < devices; ++r) {
    std::vector<std::pair<std::int64_t, Op>> taken;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int stage = chunk * devices + r;
      for (int i = 0; i < problem.microbatches; ++i) {
        const auto m = static_cast<std::uint32_t>(i);
        taken.emplace_back(slots.forward(r, chunk, i), op_of(OpKind::forward, stage, m));
        const std::int64_t back = slots.input_grad(r, chunks - 1 - chunk, i);
        if (split) {
          taken.emplace_back(back, op_of(OpKind::input_grad, stage, m));
          taken.emplace_back(back + 1, op_of(OpKind::weight_grad, stage, m));
        } else {
          taken.emplace_back(back, op_of(OpKind::backward, stage, m));
        }
      }
    }
    std::sort(taken.begin(), taken.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Op>& list = lists.emplace_back();
    list.reserve(taken.size());
    for (const auto& [slot, op] : taken) list.push_back(op);
  }
  return lists;
}

}  // namespace stageline
