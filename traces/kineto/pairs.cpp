// Splits the range of an overlapped pair between its two ops.
//
//   |(2F3;1B1)OVERLAP_F_B               |    whole range
//   |2F3      |  waits for RECV_B |1B1  |    first_end and second_start
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/analysis/kind_times.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

using Kind = std::pair<int, OpKind>;

Kind kind_of(Op op) { return {op.stage, op.kind}; }

// Times of ops where they were measured separately: outside of pairs, or by the operators inside.
class OwnTimes {
 public:
  void add(Op op, std::int64_t time) { times_[kind_of(op)].push_back(time); }

  // The median. A backward that never ran as a whole takes the sum of its halves.
  std::optional<Time> of(Op op) {
    if (const std::optional<Time> own = median_of(kind_of(op))) return own;
    if (op.kind != OpKind::backward) return {};
    const std::optional<Time> input = median_of({op.stage, OpKind::input_grad});
    const std::optional<Time> weight = median_of({op.stage, OpKind::weight_grad});
    if (!weight || (!input && op.stage > 0)) return {};
    return input.value_or(Time{}) + *weight;
  }

 private:
  std::optional<Time> median_of(Kind kind) {
    const auto found = times_.find(kind);
    if (found == times_.end()) return {};
    std::vector<std::int64_t>& list = found->second;
    const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
    std::nth_element(list.begin(), middle, list.end());
    return kineto_time(*middle);
  }

  std::map<Kind, std::vector<std::int64_t>> times_;
};

std::int64_t nanoseconds(Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

std::string pairs_text(std::int64_t pairs) {
  return pairs == 1 ? "1 overlapped pair is" : fmt::format("{} overlapped pairs are", pairs);
}

// The second op begins when the first is done and its message has arrived, `latest` at the latest.
void begin_second(KinetoRange& range, std::int64_t latest) {
  const std::int64_t ready = std::max(*range.first_end, range.second_arrival.value_or(range.start));
  range.second_start = std::clamp(ready, *range.first_end, std::max(*range.first_end, latest));
}

}  // namespace

void divide_pairs(std::vector<KinetoRank>& ranks, int microbatches, KinetoRun& run) {
  OwnTimes own;
  std::int64_t shown = 0;  // pairs divided by their operators
  std::int64_t waited = 0;
  const auto each_pair = [&](auto&& visit) {
    for (KinetoRank& rank : ranks) {
      for (KinetoRange& range : rank.ranges) {
        if (range.ops.size() == 2) visit(range);
      }
    }
  };
  each_pair([&](KinetoRange& range) {
    if (!range.first_end || !range.second_start) return;
    // The range may begin later than it did at first: waiting at its front is cut off.
    range.first_end = std::clamp(*range.first_end, range.start, range.end);
    begin_second(range, std::clamp(*range.second_start, range.start, range.end));
    own.add(range.ops[0], *range.first_end - range.start);
    own.add(range.ops[1], range.end - *range.second_start);
    waited += *range.second_start - *range.first_end;
    ++shown;
  });
  for (const KinetoRank& rank : ranks) {
    for (const KinetoRange& range : rank.ranges) {
      if (range.ops.size() == 1 && lane_of(range.ops[0].kind) == LaneKind::compute) {
        own.add(range.ops[0], range.end - range.start);
      }
    }
  }
  std::int64_t outside = 0;  // pairs divided by their ops' times outside of pairs
  std::int64_t thirds = 0;
  each_pair([&](KinetoRange& range) {
    if (range.first_end) return;
    const std::optional<Time> first = own.of(range.ops[0]);
    const std::optional<Time> second = own.of(range.ops[1]);
    ++(first || second ? outside : thirds);
    const Time part = first_of_pair(kineto_time(range.end - range.start), first, second,
                                    range.ops[0].kind == OpKind::forward);
    range.first_end = range.start + nanoseconds(part);
    begin_second(range, range.end);
    waited += *range.second_start - *range.first_end;
    for (Op op : range.ops) {
      op.microbatch +=
          static_cast<std::uint32_t>(range.step) * static_cast<std::uint32_t>(microbatches);
      run.estimated.insert(plain(op));
    }
  });
  if (shown > 0) {
    run.notes.push_back(
        fmt::format("{} divided where the backward's first operator begins", pairs_text(shown)));
  }
  if (outside > 0) {
    run.notes.push_back(
        fmt::format("{} divided by the times of their ops outside of pairs, which is an estimate",
                    pairs_text(outside)));
  }
  if (thirds > 0) {
    run.notes.push_back(
        fmt::format("{} divided into a third for F and the rest for the other, an estimate, since "
                    "neither op ever ran outside of a pair",
                    pairs_text(thirds)));
  }
  if (waited > 0) {
    run.notes.push_back(fmt::format(
        "{} of overlapped pairs passed between their two ops, while the second waited for its "
        "message, and belong to neither",
        print(kineto_time(waited))));
  }
}

}  // namespace stageline
