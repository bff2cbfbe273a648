#include "sim/analysis/kind_times.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/analysis/statistics.hpp"

namespace stageline {

Time first_of_pair(Time whole, std::optional<Time> first, std::optional<Time> second,
                   bool forward_first) {
  if (first && second && *first + *second > whole) {
    const double share =
        static_cast<double>(first->count()) / static_cast<double>((*first + *second).count());
    return Time{static_cast<std::int64_t>(static_cast<double>(whole.count()) * share)};
  }
  if (first) return std::min(*first, whole);
  if (second) return whole - std::min(*second, whole);
  return forward_first ? whole / 3 : whole - whole / 3;
}

std::vector<Time> busy_of(const Timeline& timeline) {
  std::vector<Time> busy(timeline.devices.size());
  for (std::size_t d = 0; d < busy.size(); ++d) {
    Time until{};
    for (const Span& span : timeline.lanes[d * lane_kinds]) {
      if (span.end > until) busy[d] += span.end - std::max(span.start, until);
      until = std::max(until, span.end);
    }
  }
  return busy;
}

std::vector<KindTimes> kind_times(const Timeline& timeline, const std::set<Op>& estimated) {
  using Key = std::tuple<int, OpKind>;
  struct Found {
    std::vector<Time> own;
    std::vector<Time> shared;
  };
  struct Pair {
    Op first;
    Op second;
    Time whole{};
  };
  std::map<Key, Found> times;
  std::vector<Pair> pairs;
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    const Spans& lane = timeline.lanes[d * lane_kinds];
    for (std::size_t i = 0; i < lane.size(); ++i) {
      const Time time = lane[i].end - lane[i].start;
      if (lane[i].op.overlapped && i + 1 < lane.size()) {
        pairs.push_back({plain(lane[i].op), lane[i + 1].op, time});
        ++i;
        continue;
      }
      Found& found = times[{lane[i].op.stage, lane[i].op.kind}];
      (estimated.count(plain(lane[i].op)) > 0 ? found.shared : found.own).push_back(time);
    }
  }
  // The median outside of pairs; of a backward that never ran as one, of its halves.
  const auto known = [&](int stage, OpKind kind) -> std::optional<Time> {
    const auto found = times.find({stage, kind});
    if (found == times.end() || found->second.own.empty()) return {};
    return median(found->second.own);
  };
  const auto outside = [&](Op op) -> std::optional<Time> {
    const std::optional<Time> own = known(op.stage, op.kind);
    if (own || op.kind != OpKind::backward) return own;
    const std::optional<Time> input = known(op.stage, OpKind::input_grad);
    const std::optional<Time> weight = known(op.stage, OpKind::weight_grad);
    if (!weight || (!input && op.stage > 0)) return {};
    return input.value_or(Time{}) + *weight;
  };
  std::map<Key, std::optional<Time>> typical;
  for (const Pair& pair : pairs) {
    for (const Op op : {pair.first, pair.second}) {
      const Key key{op.stage, op.kind};
      if (typical.count(key) == 0) typical[key] = outside(op);
    }
  }
  for (const Pair& pair : pairs) {
    const Key first{pair.first.stage, pair.first.kind};
    const Key second{pair.second.stage, pair.second.kind};
    const Time part = first_of_pair(pair.whole, typical[first], typical[second],
                                    pair.first.kind == OpKind::forward);
    times[first].shared.push_back(part);
    times[second].shared.push_back(pair.whole - part);
  }
  std::vector<KindTimes> list;
  for (auto& [key, found] : times) {
    const bool shared = found.own.empty();
    list.push_back(
        {std::get<0>(key), std::get<1>(key), std::move(shared ? found.shared : found.own), shared});
  }
  return list;
}

}  // namespace stageline
