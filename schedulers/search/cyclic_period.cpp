#include "schedulers/search/cyclic_period.hpp"

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {

RoundClock::RoundClock(const std::vector<StageTimes>& stages, int each)
    : stages_(stages), each_(each) {
  const auto lag = [](const Way& way) { return way.wire + way.latency; };
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    const StageTimes& stage = nth(stages, s);
    for (int n = 0; n < each; ++n) {
      const int f = node(OpKind::forward, s, n);
      const int i = node(OpKind::input_grad, s, n);
      for (const Way& way : stage.to) {
        const int to = node(OpKind::forward, way.stage, n);
        ways_.push_back({f, to, stage.forward + lag(way), 0});
      }
      for (const Way& way : stage.back) {
        const int to = node(OpKind::input_grad, way.stage, n);
        ways_.push_back({i, to, stage.backward + lag(way), 0});
      }
      ways_.push_back({f, i, stage.forward, 0});
      ways_.push_back({i, node(OpKind::weight_grad, s, n), stage.backward, 0});
    }
  }
}

int RoundClock::node(OpKind kind, int stage, int number) const {
  const int place = kind == OpKind::forward ? 0 : kind == OpKind::input_grad ? 1 : 2;
  return (3 * stage + place) * each_ + number;
}

Time RoundClock::work(OpKind kind, int stage) const {
  const StageTimes& times = nth(stages_, stage);
  return kind == OpKind::forward      ? times.forward
         : kind == OpKind::input_grad ? times.backward
                                      : times.weight;
}

// Time and rounds of a circle of parents, if there is one: its ops push each other ever later.
std::optional<RoundClock::Edge> RoundClock::cycle(const std::vector<int>& parents) {
  std::vector<int> seen(parents.size(), -1);  // by which walk
  for (int walk = 0; walk < static_cast<int>(parents.size()); ++walk) {
    int at = walk;
    while (at >= 0 && nth(seen, at) < 0) {
      nth(seen, at) = walk;
      const int edge = nth(parents, at);
      at = edge < 0 ? -1 : nth(edges_, edge).from;
    }
    if (at < 0 || nth(seen, at) != walk) continue;
    Edge sum;
    const int first = at;
    do {
      const Edge& edge = nth(edges_, nth(parents, at));
      sum.time += edge.time;
      sum.rounds += edge.rounds;
      at = edge.from;
    } while (at != first);
    return sum;
  }
  return std::nullopt;
}

// Starts of micro-batch 0, so late as the ops before them ask for, at a period that grows to the
// ratio of each circle met: the maximum cycle ratio in the end.
std::optional<RoundTimes> RoundClock::times(const CyclicRound& round, Time least, Time most) {
  edges_ = ways_;
  for (const std::vector<CyclicOp>& list : round.device) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool last = i + 1 == list.size();
      const CyclicOp& a = list[i];
      const CyclicOp& b = list[last ? 0 : i + 1];
      if (last && i == 0) continue;
      edges_.push_back(
          {node(a), node(b), work(a.kind, a.stage), a.behind - b.behind + (last ? 1 : 0)});
    }
  }
  Time period = least;
  starts_.assign(3 * stages_.size() * as_size(each_), Time{});
  parent_.assign(3 * stages_.size() * as_size(each_), -1);
  bool moved = true;
  while (moved) {
    moved = false;
    looked_at_ += static_cast<std::int64_t>(edges_.size());
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const Edge& edge = edges_[e];
      const Time start = nth(starts_, edge.from) + edge.time - period * edge.rounds;
      if (start <= nth(starts_, edge.to)) continue;
      nth(starts_, edge.to) = start;
      nth(parent_, edge.to) = static_cast<int>(e);
      moved = true;
    }
    if (!moved) break;
    const std::optional<Edge> circle = cycle(parent_);
    if (!circle) continue;
    if (circle->rounds <= 0) return std::nullopt;
    const std::int64_t time = circle->time.count();
    period = std::max(period, Time{(time + circle->rounds - 1) / circle->rounds});
    if (period > most) return std::nullopt;
    std::fill(starts_.begin(), starts_.end(), Time{});
    std::fill(parent_.begin(), parent_.end(), -1);
  }
  RoundTimes times{period, {}};
  Time begins = Time::max();
  for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
    begins = std::min(begins, nth(starts_, node(OpKind::forward, s, 0)));
    for (const OpKind kind : {OpKind::input_grad, OpKind::weight_grad}) {
      times.through = std::max(times.through, nth(starts_, node(kind, s, 0)) + work(kind, s));
    }
  }
  times.through -= begins;
  return times;
}

}  // namespace stageline
