// A second opinion on when things run, for tests only: slow and plain, straight from a program and
// its costs. It shares no code with sim/rules.hpp, sim/lower/compile.cpp and sim/engine.cpp.
#pragma once

#include <cmath>
#include <map>

#include "sim/base/index.hpp"
#include "sim/costs.hpp"
#include "tests/schedules/needs_table.hpp"

namespace stageline::test {

/// What each op of a program takes, and how long after its end others can use what it made.
class Prices {
 public:
  Prices(const Program& program, const Costs& costs)
      : program_(program), costs_(costs), wires_(wires_of(program)) {}

  struct Price {
    Time duration{};
    Time lag{};
  };
  Price of(Op one) const {
    const StageCosts& stage = stages(one)[one.stage];
    const StagePlace& place = program_.placement.stage[one.stage];
    const Roles roles(place);
    const int here = roles.apart ? roles.forward : home(one.stage, one.microbatch);
    const int there = roles.apart ? roles.weight_grad : here;
    switch (one.kind) {
      case OpKind::forward:
        return {stage.forward, {}};
      case OpKind::input_grad:
        return {Time{share(stage.input_grad.count(), place, one.part)}, {}};
      case OpKind::weight_grad:
        return {stage.weight_grad, {}};
      case OpKind::backward:
        return {stage.backward, {}};
      case OpKind::recompute:
        return {stage.recompute, {}};
      case OpKind::update:
        return {stage.update, {}};
      case OpKind::offload:
        return over(stash_home(place, one.microbatch) < 0
                        ? nth(costs_.network.to_host, here)
                        : costs_.network.between(here, stash_home(place, one.microbatch)),
                    rebuilt(one) ? stage.boundary : stage.stash());
      case OpKind::prefetch: {
        const int reader = roles.apart ? roles.readers().at(one.part) : here;
        return over(stash_home(place, one.microbatch) < 0
                        ? nth(costs_.network.from_host, reader)
                        : costs_.network.between(stash_home(place, one.microbatch), reader),
                    rebuilt(one) ? stage.boundary : stage.stash());
      }
      case OpKind::send_forward:
      case OpKind::send_backward:
        return message(one);
      case OpKind::reduce_grad: {
        const auto& replicas = program_.placement.stage[one.stage].replicas;
        const auto r = static_cast<std::int64_t>(replicas.size());
        // Of the slowest hop: what a replica sends on has come by all others.
        Price slowest{};
        for (std::size_t i = 0; i < replicas.size(); ++i) {
          const Price hop = over(
              costs_.network.between(nth(replicas, i), nth(replicas, (i + 1) % replicas.size())),
              Bytes{2 * (r - 1) * stage.gradients.count / r});
          slowest.duration = std::max(slowest.duration, hop.duration);
          slowest.lag = std::max(slowest.lag, hop.lag);
        }
        return {slowest.duration + 2 * (r - 1) * slowest.lag, {}};
      }
      case OpKind::receive_forward:
      case OpKind::receive_backward:
      case OpKind::receive_stash:
      case OpKind::receive_weights:
        break;
      case OpKind::send_weights:
        return over(costs_.network.between(there, roles.weights_go_to().at(one.part)),
                    stage.weights);
      case OpKind::send_stash: {
        const int to = roles.stash_goes_to().at(one.part);
        return over(costs_.network.between(here, to),
                    rebuilt(one) ? stage.boundary : stage.stash());
      }
    }
    return {};
  }

  int home(int stage, std::uint32_t m) const {
    const auto& replicas = nth(program_.placement.stage, stage).replicas;
    return replicas[m % replicas.size()];
  }

 private:
  bool rebuilt(Op copy) const {
    for (const auto& list : program_.ops) {
      for (const Op one : list) {
        if (one.kind != OpKind::recompute || one.stage != copy.stage) continue;
        if (one.microbatch == copy.microbatch) return true;
      }
    }
    return false;
  }

  static Price over(const Route& route, Bytes bytes) {
    if (route.bandwidth.is_unlimited()) return {Time{}, route.latency};
    const long double seconds = static_cast<long double>(bytes.count) /
                                static_cast<long double>(route.bandwidth.bytes_per_second);
    return {Time{std::llround(seconds * 1e12L)}, route.latency};
  }

  // Of a divided I: rounded running sums, so that the parts add up.
  static std::int64_t share(std::int64_t whole, const StagePlace& place, int part) {
    if (place.share.size() < 2) return whole;
    double sum = 0;
    std::int64_t before = 0;
    for (int i = 0;; ++i) {
      sum += nth(place.share, i);
      const bool last = i + 1 == static_cast<int>(place.share.size());
      const std::int64_t now = last ? whole : std::llround(static_cast<double>(whole) * sum);
      if (i == part) return now - before;
      before = now;
    }
  }

  int device(int stage, std::uint32_t m, int role_device) const {
    const Roles roles(nth(program_.placement.stage, stage));
    return roles.apart ? role_device : home(stage, m);
  }

  Price message(Op one) const {
    const Roles here(program_.placement.stage[one.stage]);
    if (one.kind == OpKind::send_forward) {
      for (std::size_t e = 0; e < wires_.size(); ++e) {
        if (wires_[e].from != one.stage || wires_[e].among_outgoing != one.part) continue;
        const Roles next(nth(program_.placement.stage, wires_[e].to));
        return over(costs_.network.between(device(one.stage, one.microbatch, here.forward),
                                           device(wires_[e].to, one.microbatch, next.forward)),
                    edges(one)[e].activation);
      }
      return {};
    }
    const GradientWay way = gradient_ways(program_, one.stage).at(one.part);
    for (std::size_t e = 0; e < wires_.size(); ++e) {
      if (wires_[e].from != way.from || wires_[e].to != one.stage) continue;
      const int maker = device(one.stage, one.microbatch, nth(here.input_grad, way.part));
      const int reader = way.reader < 0 ? home(way.from, one.microbatch) : way.reader;
      return over(costs_.network.between(maker, reader),
                  Bytes{share(edges(one)[e].gradient.count, program_.placement.stage[one.stage],
                              way.part)});
    }
    return {};
  }

  const Program& program_;
  // Of the kind of the op's micro-batch.
  const std::vector<StageCosts>& stages(Op one) const {
    return costs_.kinds.empty() ? costs_.stage : kind(one).stage;
  }
  const std::vector<EdgeCosts>& edges(Op one) const {
    return costs_.kinds.empty() ? costs_.edges : kind(one).edges;
  }
  const MicrobatchCosts& kind(Op one) const {
    return costs_.kinds.at(costs_.kind_of.at(one.microbatch % costs_.kind_of.size()));
  }

  const Costs& costs_;
  std::vector<EdgeWire> wires_;
};

struct When {
  Time start{};
  Time end{};
};

/// By op, receives left out: when it runs if nothing is shared but lanes. An op starts when the op
/// before it in its lane has ended and what it needs is there. Empty when the program cannot
/// finish. Goes round and round over all ops until nothing new is known.
inline std::map<Op, When> reference(const Program& program, const Costs& costs) {
  const Table table(program);
  const Prices prices(program, costs);
  struct Item {
    std::vector<Op> ops;  // two when overlapped
    int before = -1;      // in its lane
    std::vector<Op> needs;
    Time duration{};
    std::vector<Time> lags;
    bool known = false;
    Time start{};
  };
  std::vector<Item> items;
  std::map<Op, std::size_t> item_of;
  for (const auto& list : program.ops) {
    std::map<LaneKind, int> last;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const LaneKind lane = lane_of(program.settings, list[i].kind);
      if (lane == LaneKind::receive) continue;
      Item item;
      item.ops.push_back(plain(list[i]));
      if (list[i].overlapped) item.ops.push_back(plain(list[++i]));
      if (last.count(lane) > 0) item.before = last[lane];
      last[lane] = static_cast<int>(items.size());
      if (item.ops.size() == 2) {
        const Time shorter =
            std::min(prices.of(item.ops[0]).duration, prices.of(item.ops[1]).duration);
        item.duration -= Time{
            std::llround(costs.pair_overlap.value_or(0) * static_cast<double>(shorter.count()))};
      }
      for (const Op one : item.ops) {
        item_of[one] = items.size();
        item.duration += prices.of(one).duration;
        item.lags.push_back(prices.of(one).lag);
        for (const Op need : table.needs(one)) item.needs.push_back(need);
      }
      items.push_back(item);
    }
  }
  std::size_t known = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (Item& item : items) {
      if (item.known) continue;
      Time start{};
      bool ready = true;
      if (item.before >= 0) {
        const Item& before = nth(items, item.before);
        ready = before.known;
        start = before.start + before.duration;
      }
      for (const Op need : item.needs) {
        const auto found = item_of.find(need);
        if (found == item_of.end() || !items[found->second].known) {
          ready = false;
          break;
        }
        const Item& maker = items[found->second];
        start = std::max(start, maker.start + maker.duration +
                                    maker.lags[maker.ops[0] == need ? 0 : maker.ops.size() - 1]);
      }
      if (!ready) continue;
      item.known = progress = true;
      item.start = start;
      ++known;
    }
  }
  std::map<Op, When> when;
  if (known < items.size()) return when;
  for (const Item& item : items) {
    for (const Op one : item.ops) when[one] = {item.start, item.start + item.duration};
  }
  return when;
}

}  // namespace stageline::test
