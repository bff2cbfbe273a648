#include "schedulers/parts/order_climb.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_remembered = 300;  // values of earlier tries
constexpr std::size_t most_patient = 4000;    // tries without a better order
constexpr std::size_t patient_for_one = 5;    // op
constexpr int most_brought_forward = 3;
constexpr int traced_again = 50;  // tries on one critical path

constexpr OpKind kinds[] = {OpKind::forward, OpKind::input_grad, OpKind::weight_grad};

std::uint32_t number_of(OpKind kind) {
  return kind == OpKind::forward ? 0 : kind == OpKind::input_grad ? 1 : 2;
}

}  // namespace

OrderClimb::OrderClimb(const Problem& problem, const StashLimit& limit, StashRoom room,
                       bool for_span)
    : count_(as_size(problem.microbatches)),
      for_span_(for_span),
      stages_(stage_times(problem, true)),
      most_(limit.most),
      room_(std::move(room)) {
  const std::size_t devices = problem.devices.size();
  most_.resize(devices, -1);
  if (room_.bytes.empty()) room_.bytes.assign(devices, std::numeric_limits<std::int64_t>::max());
  order_.resize(devices);
  next_.resize(devices);
  free_.resize(devices);
  link_.resize(devices);
  const bool bytes = limit.unit == StashLimit::Unit::bytes;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const StageTimes& times = stages_[s];
    const StageCosts& costs = problem.costs.stage[s];
    const std::int64_t all = bytes ? costs.stash().count : 1;
    const std::int64_t later = bytes ? costs.stash_after_input_grad().count : 1;
    for (std::size_t m = 0; m < count_; ++m) {
      for (const OpKind kind : kinds) {
        Fixed fixed;
        fixed.device = static_cast<std::uint32_t>(times.device);
        fixed.stage = static_cast<std::uint32_t>(s);
        fixed.kind = kind;
        Run run;
        run.cause = static_cast<Node>(fixed_.size());
        if (kind == OpKind::forward) {
          fixed.duration = times.forward;
          fixed.holds = all;
          fixed.bytes = costs.stash().count;
          run.missing = static_cast<int>(times.needs.size());
        } else if (kind == OpKind::input_grad) {
          fixed.duration = times.backward;
          fixed.holds = later - all;
          run.missing = static_cast<int>(times.to.size()) + 1;
        } else {
          fixed.duration = times.weight;
          fixed.holds = -later;
          fixed.bytes = -costs.stash().count;
          run.missing = 1;
        }
        fixed_.push_back(fixed);
        blank_.push_back(run);
      }
    }
  }
  marks_.resize(fixed_.size());
}

void OrderClimb::read(const StepLists& lists) {
  for (std::size_t d = 0; d < order_.size(); ++d) {
    order_[d].clear();
    for (const Op op : lists[d]) {
      const std::size_t share = as_size(op.stage) * count_ + op.microbatch;
      order_[d].push_back(static_cast<Node>(share * 3 + number_of(op.kind)));
    }
  }
}

StepLists OrderClimb::written(const std::vector<std::vector<Node>>& order) const {
  StepLists lists(order.size());
  for (std::size_t d = 0; d < order.size(); ++d) {
    for (const Node node : order[d]) {
      const auto m = static_cast<std::uint32_t>(node / 3 % count_);
      const Fixed& fixed = fixed_[node];
      lists[d].push_back(op_of(fixed.kind, static_cast<int>(fixed.stage), m));
    }
  }
  return lists;
}

bool OrderClimb::keeps_limit(std::size_t device) const {
  std::int64_t held = 0;
  std::int64_t bytes = 0;
  for (const Node node : order_[device]) {
    held += fixed_[node].holds;
    bytes += fixed_[node].bytes;
    if (most_[device] >= 0 && held > most_[device]) return false;
    if (bytes > room_.bytes[device]) return false;
  }
  return true;
}

// ---- the times of an order ----------------------------------------------------------------------

// Whether it finishes.
bool OrderClimb::run() {
  runs_ = blank_;
  std::fill(next_.begin(), next_.end(), 0);
  std::fill(free_.begin(), free_.end(), Time{});
  std::fill(link_.begin(), link_.end(), Time{});
  for (std::size_t d = 0; d < order_.size(); ++d) waiting_.push_back(d);
  std::size_t done = 0;
  while (!waiting_.empty()) {
    const std::size_t d = waiting_.back();
    waiting_.pop_back();
    const std::vector<Node>& list = order_[d];
    while (next_[d] < list.size() && runs_[list[next_[d]]].missing == 0) {
      const Node node = list[next_[d]];
      Run& run = runs_[node];
      run.at = static_cast<std::uint32_t>(next_[d]++);
      run.start = std::max(free_[d], run.ready);
      free_[d] = run.start + fixed_[node].duration;
      ++done;
      pass_on(node, d);
    }
  }
  return done == fixed_.size();
}

void OrderClimb::pass_on(Node node, std::size_t device) {
  const Fixed& fixed = fixed_[node];
  if (fixed.kind == OpKind::weight_grad) return;
  const Time end = free_[device];
  arrive(node + 1, end, node, device);
  const StageTimes& stage = stages_[fixed.stage];
  const bool forward = fixed.kind == OpKind::forward;
  for (const Way& way : forward ? stage.to : stage.back) {
    Time at = end;
    if (way.over_a_link) {
      link_[device] = std::max(link_[device], end) + way.wire;
      at = link_[device] + way.latency;
    }
    // The same micro-batch and kind of another stage.
    const auto from = static_cast<Node>(std::size_t{fixed.stage} * 3 * count_);
    arrive(node - from + static_cast<Node>(as_size(way.stage) * 3 * count_), at, node, device);
  }
}

void OrderClimb::arrive(Node node, Time at, Node from, std::size_t device) {
  Run& run = runs_[node];
  if (at >= run.ready) {
    run.ready = at;
    run.cause = from;
  }
  if (--run.missing > 0) return;
  const std::size_t there = fixed_[node].device;
  if (there == device || next_[there] == order_[there].size()) return;
  if (order_[there][next_[there]] == node) waiting_.push_back(there);
}

OrderClimb::Value OrderClimb::value() const {
  Value value;
  for (std::size_t d = 0; d < order_.size(); ++d) {
    if (order_[d].empty()) continue;
    const Time from = for_span_ ? runs_[order_[d].front()].start : Time{};
    value.longest = std::max(value.longest, free_[d] - from);
    value.sum += (free_[d] - from).count();
  }
  return value;
}

std::optional<StepTimes> OrderClimb::times(const StepLists& lists) {
  read(lists);
  for (std::size_t d = 0; d < order_.size(); ++d) {
    if (!keeps_limit(d)) return std::nullopt;
  }
  if (!run()) return std::nullopt;
  StepTimes times;
  for (std::size_t d = 0; d < order_.size(); ++d) {
    if (order_[d].empty()) continue;
    times.span = std::max(times.span, free_[d] - runs_[order_[d].front()].start);
    times.makespan = std::max(times.makespan, free_[d]);
  }
  return times;
}

// ---- moves --------------------------------------------------------------------------------------

// From the end of the device whose span, or end, is the last, back to its start. Where an op waits
// for its device as long as for its inputs, either.
void OrderClimb::trace() {
  path_.clear();
  const auto begin_of = [&](std::size_t d) {
    return for_span_ ? runs_[order_[d].front()].start : Time{};
  };
  std::optional<std::size_t> last;
  for (std::size_t d = 0; d < order_.size(); ++d) {
    if (order_[d].empty()) continue;
    if (!last || free_[d] - begin_of(d) > free_[*last] - begin_of(*last)) last = d;
  }
  if (!last) return;
  const Time begin = begin_of(*last);
  Node node = order_[*last].back();
  while (true) {
    const Run& run = runs_[node];
    path_.push_back({node, run.at});
    if (run.start <= begin) return;
    const bool after = run.at > 0 && end_of(order_[fixed_[node].device][run.at - 1]) == run.start;
    const bool arrived = run.cause != node && run.ready == run.start;
    if (!after && !arrived) return;
    const bool by_device = after && (!arrived || random_() % 2 == 0);
    node = by_device ? order_[fixed_[node].device][run.at - 1] : run.cause;
  }
}

// What can be seen at once; other circles show when the order is run.
bool OrderClimb::must_precede(Node before, Node after) const {
  const Fixed& a = fixed_[before];
  const Fixed& b = fixed_[after];
  if (a.stage != b.stage) return false;
  return a.kind == b.kind || before / 3 == after / 3;
}

// A stretch of the path on one device: its last op, which others wait for, goes forward in it, its
// first back, or any one forward.
std::optional<OrderClimb::Move> OrderClimb::draw() {
  const std::size_t here = random_() % path_.size();
  const std::uint32_t d = fixed_[path_[here].node].device;
  const auto joined = [&](std::size_t later) {
    return fixed_[path_[later + 1].node].device == d && path_[later + 1].at + 1 == path_[later].at;
  };
  std::size_t late = here;
  std::size_t early = here;
  while (late > 0 && fixed_[path_[late - 1].node].device == d && joined(late - 1)) --late;
  while (early + 1 < path_.size() && joined(early)) ++early;
  const std::size_t first = path_[early].at;
  const std::size_t last = path_[late].at;
  if (first == last) return std::nullopt;
  const std::size_t length = last - first;
  Move move{d, last, first};
  switch (random_() % 4) {
    case 0:
      break;
    case 1:
      move.to = last - 1 - random_() % length;
      break;
    case 2:
      move = {d, first, first + 1 + random_() % length};
      break;
    case 3:
      move.from = first + 1 + random_() % length;
      move.to = first + random_() % (move.from - first);
      break;
  }
  // As far as what must be before or behind it lets it.
  const std::vector<Node>& list = order_[d];
  const Node node = list[move.from];
  std::size_t to = move.from;
  if (move.to < move.from) {
    while (to > move.to && !must_precede(list[to - 1], node)) --to;
  } else {
    while (to < move.to && !must_precede(node, list[to + 1])) ++to;
  }
  if (to == move.from) return std::nullopt;
  move.to = to;
  return move;
}

void OrderClimb::apply(Move move) {
  const auto at = [&](std::size_t i) {
    return order_[move.device].begin() + static_cast<std::ptrdiff_t>(i);
  };
  if (move.to < move.from) {
    std::rotate(at(move.to), at(move.from), at(move.from + 1));
  } else {
    std::rotate(at(move.from), at(move.from + 1), at(move.to + 1));
  }
}

// Brings forward the next W's where there is no room for an F. Whether that is enough.
bool OrderClimb::fit(std::size_t device) {
  std::vector<Node>& list = order_[device];
  ++mark_;
  std::int64_t held = 0;
  std::int64_t bytes = 0;
  int moved = 0;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto here = list.begin() + static_cast<std::ptrdiff_t>(at);
    const std::int64_t then = held + fixed_[*here].holds;
    const std::int64_t bytes_then = bytes + fixed_[*here].bytes;
    if ((most_[device] >= 0 && then > most_[device]) || bytes_then > room_.bytes[device]) {
      const auto weight = std::find_if(here + 1, list.end(), [&](Node node) {
        return fixed_[node].kind == OpKind::weight_grad && marks_[node - 1] == mark_;
      });
      if (weight == list.end() || ++moved > most_brought_forward) return false;
      std::rotate(here, weight, weight + 1);
    }
    held += fixed_[*here].holds;
    bytes += fixed_[*here].bytes;
    marks_[*here] = mark_;
  }
  return true;
}

StepLists OrderClimb::climb(const StepLists& lists, std::int64_t tries, Time bound) {
  random_.seed(1);
  read(lists);
  run();
  Value now = value();
  Value best = now;
  auto best_order = order_;
  // Small steps are soon as good as they get.
  const std::size_t patience = std::min(most_patient, patient_for_one * fixed_.size());
  std::vector<Value> before(std::min(most_remembered, fixed_.size()), now);
  std::size_t since = 0;  // tries without a better order
  int stale = traced_again;
  for (std::int64_t i = 0; i < tries && since < patience && best.longest > bound; ++i, ++since) {
    if (stale++ >= traced_again) {
      run();
      trace();
      stale = 0;
    }
    std::optional<Move> move;
    for (int draws = 0; draws < 8 && !move; ++draws) {
      move = draw();
      if (!move) continue;
      saved_ = order_[move->device];
      apply(*move);
      if (fit(move->device)) continue;
      order_[move->device].swap(saved_);
      move.reset();
    }
    if (!move) {
      stale = traced_again;
      continue;
    }
    Value& earlier = before[static_cast<std::size_t>(i) % before.size()];
    const bool finishes = run();
    const Value then = finishes ? value() : now;
    if (!finishes || (now < then && earlier < then)) {
      order_[move->device].swap(saved_);
    } else {
      now = then;
      trace();
      stale = 0;
      if (now < best) {
        if (now.longest < best.longest) since = 0;
        best = now;
        best_order = order_;
      }
    }
    if (now < earlier) earlier = now;
  }
  return written(best_order);
}

}  // namespace stageline
