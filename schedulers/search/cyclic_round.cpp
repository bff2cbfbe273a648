#include "schedulers/search/cyclic_round.hpp"

#include <algorithm>

#include "schedulers/parts/stage_times.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

// The parts of F's stash that I and W free.
struct Frees {
  std::int64_t by_input = 0;
  std::int64_t by_weight = 0;  // the rest
  std::int64_t all() const { return by_input + by_weight; }
};

Frees frees(const Problem& problem, const StashLimit& limit, int stage) {
  if (limit.unit == StashLimit::Unit::stashes) return {0, 1};
  const StageCosts& costs = nth(problem.costs.stage, stage);
  const std::int64_t after = costs.stash_after_input_grad().count;
  return {costs.stash().count - after, after};
}

bool is_limited(const StashLimit& limit, std::size_t device) {
  return device < limit.most.size() && limit.most[device] >= 0;
}

// From the start of F to the end of I at least, by stage: through all that hangs on it.
std::vector<Time> held_at_least(const std::vector<StageTimes>& stages) {
  std::vector<Time> held(stages.size());
  for (int s = static_cast<int>(stages.size()) - 1; s >= 0; --s) {
    const StageTimes& here = nth(stages, s);
    Time longest = here.forward;
    for (const Way& way : here.to) {
      Time back{};
      for (const Way& home : nth(stages, way.stage).back) {
        if (home.stage == s) back = home.wire + home.latency;
      }
      longest =
          std::max(longest, here.forward + way.wire + way.latency + nth(held, way.stage) + back);
    }
    nth(held, s) = longest + here.backward;
  }
  return held;
}

bool keeps_limit(const Problem& problem, const StashLimit& limit, const std::vector<CyclicOp>& list,
                 std::int64_t most) {
  std::int64_t held = 0;
  for (const CyclicOp& op : list) {
    const Frees share = frees(problem, limit, op.stage);
    held += op.behind * (op.kind == OpKind::forward      ? -share.all()
                         : op.kind == OpKind::input_grad ? share.by_input
                                                         : share.by_weight);
  }
  for (const CyclicOp& op : list) {
    const Frees share = frees(problem, limit, op.stage);
    held += op.kind == OpKind::forward      ? share.all()
            : op.kind == OpKind::input_grad ? -share.by_input
                                            : -share.by_weight;
    if (held > most) return false;
  }
  return true;
}

int place_of(OpKind kind) {
  return kind == OpKind::forward ? 0 : kind == OpKind::input_grad ? 1 : 2;
}

}  // namespace

StepLists unrolled(const CyclicRound& round, int microbatches) {
  StepLists lists;
  for (const std::vector<CyclicOp>& ops : round.device) {
    std::vector<Op>& list = lists.emplace_back();
    if (ops.empty()) continue;
    const auto [least, most] = std::minmax_element(
        ops.begin(), ops.end(),
        [](const CyclicOp& a, const CyclicOp& b) { return a.behind < b.behind; });
    list.reserve(ops.size() * as_size(microbatches));
    for (int k = least->behind; round.each * (k - most->behind) < microbatches; ++k) {
      for (const CyclicOp& op : ops) {
        const int microbatch = round.each * (k - op.behind) + op.number;
        if (microbatch < 0 || microbatch >= microbatches) continue;
        list.push_back(op_of(op.kind, op.stage, static_cast<std::uint32_t>(microbatch)));
      }
    }
  }
  return lists;
}

std::optional<CyclicRound> middle_round(const StepLists& lists, int stages, int each) {
  CyclicRound round{each, {}};
  std::vector<int> seen(3 * as_size(stages) * as_size(each));
  for (const std::vector<Op>& list : lists) {
    std::vector<CyclicOp>& ops = round.device.emplace_back();
    if (list.empty()) continue;
    const auto is_first = [&](const Op& op) {
      return op.kind == list.front().kind && op.stage == list.front().stage &&
             static_cast<int>(op.microbatch) % each == 0;
    };
    const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
    const auto begin = std::find_if(middle, list.end(), is_first);
    if (begin == list.end()) return std::nullopt;
    const auto end = std::find_if(begin + 1, list.end(), is_first);
    if (end == list.end()) return std::nullopt;
    for (auto op = begin; op != end; ++op) {
      if (op->kind != OpKind::forward && op->kind != OpKind::input_grad &&
          op->kind != OpKind::weight_grad) {
        return std::nullopt;
      }
      const auto microbatch = static_cast<int>(op->microbatch);
      const int number = microbatch % each;
      if (nth(seen, (3 * op->stage + place_of(op->kind)) * each + number)++ > 0) {
        return std::nullopt;
      }
      ops.push_back({op->kind, static_cast<int>(op->stage), number,
                     static_cast<int>(begin->microbatch) / each - microbatch / each});
    }
  }
  if (std::count(seen.begin(), seen.end(), 0) > 0) return std::nullopt;
  return round;
}

bool keeps_limit(const Problem& problem, const StashLimit& limit, const CyclicRound& round) {
  for (std::size_t d = 0; d < round.device.size(); ++d) {
    if (is_limited(limit, d) && !keeps_limit(problem, limit, round.device[d], limit.most[d])) {
      return false;
    }
  }
  return true;
}

Time least_period(const Problem& problem, const StashLimit& limit) {
  const std::vector<StageTimes> stages = stage_times(problem, true);
  const std::vector<Time> held = held_at_least(stages);
  std::vector<Time> work(problem.devices.size());
  std::vector<Time> sends(problem.devices.size());
  std::vector<Wide> area(problem.devices.size());
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    const StageTimes& here = nth(stages, s);
    nth(work, here.device) += here.forward + here.backward + here.weight;
    for (const std::vector<Way>* ways : {&here.to, &here.back}) {
      for (const Way& way : *ways) nth(sends, here.device) += way.wire;
    }
    const Frees share = frees(problem, limit, s);
    const Time until_weight = nth(held, s) + here.weight;
    nth(area, here.device) +=
        Wide{share.by_input} * nth(held, s).count() + Wide{share.by_weight} * until_weight.count();
  }
  Time least{1};
  for (std::size_t d = 0; d < work.size(); ++d) {
    least = std::max({least, work[d], sends[d]});
    if (!is_limited(limit, d) || limit.most[d] == 0) continue;
    const Wide most = limit.most[d];
    least = std::max(least, Time{static_cast<std::int64_t>((area[d] + most - 1) / most)});
  }
  return least;
}

}  // namespace stageline
