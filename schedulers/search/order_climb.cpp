#include "schedulers/search/order_climb.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_remembered = 300;  // values of earlier tries
constexpr std::size_t most_patient = 4000;    // tries without a better order
constexpr std::size_t patient_for_one = 5;    // op
constexpr int most_brought_forward = 3;
constexpr int traced_again = 50;  // tries on one critical path

}  // namespace

OrderClimb::OrderClimb(const Problem& problem, const StashLimit& limit, StashRoom room,
                       bool for_span)
    : for_span_(for_span), times_(problem, for_span), most_(limit.most), room_(std::move(room)) {
  const std::size_t devices = problem.devices.size();
  most_.resize(devices, -1);
  if (room_.bytes.empty()) room_.bytes.assign(devices, std::numeric_limits<std::int64_t>::max());
  const bool bytes = limit.unit == StashLimit::Unit::bytes;
  for (std::size_t i = 0; i < times_.stage_ops(); ++i) {
    const OrderTimes::StageOp& one = times_.stage_op(i);
    const StageCosts& costs = problem.costs.stage[one.stage];
    const std::int64_t stash = costs.stash().count;
    const std::int64_t all = bytes ? stash : 1;
    const std::int64_t later = bytes ? costs.stash_after_input_grad().count : 1;
    held_.push_back(one.kind == OpKind::forward      ? Held{all, stash}
                    : one.kind == OpKind::input_grad ? Held{later - all, 0}
                                                     : Held{-later, -stash});
  }
  marks_.resize(times_.nodes());
}

bool OrderClimb::keeps_limit(std::size_t device) const {
  std::int64_t held = 0;
  std::int64_t bytes = 0;
  for (const Node node : times_.order()[device]) {
    held += held_by(node).limited;
    bytes += held_by(node).bytes;
    if (most_[device] >= 0 && held > most_[device]) return false;
    if (bytes > room_.bytes[device]) return false;
  }
  return true;
}

// Whether it keeps the limit and finishes.
bool OrderClimb::run(const StepLists& lists) {
  times_.read(lists);
  for (std::size_t d = 0; d < lists.size(); ++d) {
    if (!keeps_limit(d)) return false;
  }
  return times_.run();
}

std::optional<StepTimes> OrderClimb::times(const StepLists& lists) {
  if (!run(lists)) return std::nullopt;
  return times_.step_times();
}

std::optional<StepTimes> OrderClimb::times_from_begin(const StepLists& lists) {
  if (!run(lists)) return std::nullopt;
  StepTimes times{Time{}, times_.step_times().makespan};
  for (const std::vector<Node>& list : times_.order()) {
    if (list.empty() || times_.start_of(list.front()) > Time{}) continue;
    times.span = std::max(times.span, times_.end_of(list.back()));
  }
  return times;
}

// ---- moves --------------------------------------------------------------------------------------

// From the end of the device whose span, or end, is the last, back to its start. Where an op waits
// for its device as long as for its inputs, either.
void OrderClimb::trace() {
  path_.clear();
  const OrderTimes::NodeLists& order = times_.order();
  const auto begin_of = [&](std::size_t d) {
    return for_span_ ? times_.start_of(order[d].front()) : Time{};
  };
  const auto length_of = [&](std::size_t d) {
    return times_.end_of(order[d].back()) - begin_of(d);
  };
  std::optional<std::size_t> last;
  for (std::size_t d = 0; d < order.size(); ++d) {
    if (order[d].empty()) continue;
    if (!last || length_of(d) > length_of(*last)) last = d;
  }
  if (!last) return;
  const Time begin = begin_of(*last);
  Node node = order[*last].back();
  while (true) {
    const std::uint32_t at = times_.position_of(node);
    path_.push_back({node, at});
    const Time start = times_.start_of(node);
    if (start <= begin) return;
    const std::vector<Node>& list = order[op(node).device];
    const bool after = at > 0 && times_.end_of(list[at - 1]) == start;
    const std::optional<Node> cause = times_.cause_of(node);
    if (!after && !cause) return;
    const bool by_device = after && (!cause || random_() % 2 == 0);
    node = by_device ? list[at - 1] : *cause;
  }
}

// What can be seen at once; other circles show when the order is run.
bool OrderClimb::must_precede(Node before, Node after) const {
  const OrderTimes::StageOp& a = op(before);
  const OrderTimes::StageOp& b = op(after);
  if (a.stage != b.stage) return false;
  return a.kind == b.kind || before / 3 == after / 3;
}

// A stretch of the path on one device: its last op, which others wait for, goes forward in it, its
// first back, or any one forward.
std::optional<OrderClimb::Move> OrderClimb::draw() {
  const std::size_t here = random_() % path_.size();
  const std::uint32_t d = op(path_[here].node).device;
  const auto joined = [&](std::size_t later) {
    return op(path_[later + 1].node).device == d && path_[later + 1].at + 1 == path_[later].at;
  };
  std::size_t late = here;
  std::size_t early = here;
  while (late > 0 && op(path_[late - 1].node).device == d && joined(late - 1)) --late;
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
  const std::vector<Node>& list = times_.order()[d];
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
  const auto at = [&](std::size_t i) { return list_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (move.to < move.from) {
    std::rotate(at(move.to), at(move.from), at(move.from + 1));
  } else {
    std::rotate(at(move.from), at(move.from + 1), at(move.to + 1));
  }
}

// Brings forward the next W's where there is no room for an F. Whether that is enough.
bool OrderClimb::fit(std::size_t device) {
  ++mark_;
  std::int64_t held = 0;
  std::int64_t bytes = 0;
  int moved = 0;
  for (std::size_t at = 0; at < list_.size(); ++at) {
    const auto here = list_.begin() + static_cast<std::ptrdiff_t>(at);
    const std::int64_t then = held + held_by(*here).limited;
    const std::int64_t bytes_then = bytes + held_by(*here).bytes;
    if ((most_[device] >= 0 && then > most_[device]) || bytes_then > room_.bytes[device]) {
      const auto weight = std::find_if(here + 1, list_.end(), [&](Node node) {
        return op(node).kind == OpKind::weight_grad && marks_[node - 1] == mark_;
      });
      if (weight == list_.end() || ++moved > most_brought_forward) return false;
      std::rotate(here, weight, weight + 1);
    }
    held += held_by(*here).limited;
    bytes += held_by(*here).bytes;
    marks_[*here] = mark_;
  }
  return true;
}

StepLists OrderClimb::climb(const StepLists& lists, std::int64_t tries, Time bound,
                            std::uint32_t seed) {
  random_.seed(seed);
  times_.read(lists);
  times_.run();
  Value now = times_.value();
  Value best = now;
  auto best_order = times_.order();
  // Small steps are soon as good as they get.
  const std::size_t patience = std::min(most_patient, patient_for_one * times_.nodes());
  std::vector<Value> before(std::min(most_remembered, times_.nodes()), now);
  std::size_t since = 0;  // tries without a better order
  int stale = traced_again;
  for (std::int64_t i = 0; i < tries && since < patience && best.longest > bound; ++i, ++since) {
    if (stale++ >= traced_again) {
      times_.restore();
      trace();
      stale = 0;
    }
    std::optional<Move> move;
    for (int draws = 0; draws < 8 && !move; ++draws) {
      move = draw();
      if (!move) continue;
      list_ = times_.order()[move->device];
      apply(*move);
      if (!fit(move->device)) move.reset();
    }
    if (!move) {
      stale = traced_again;
      continue;
    }
    Value& earlier = before[static_cast<std::size_t>(i) % before.size()];
    const Time most = std::max(now.longest, earlier.longest);
    const bool may_stay = times_.change(move->device, list_, most);
    const Value then = may_stay ? times_.value() : now;
    if (!may_stay || (now < then && earlier < then)) {
      if (may_stay) times_.undo();
    } else {
      now = then;
      trace();
      stale = 0;
      if (now < best) {
        if (now.longest < best.longest) since = 0;
        best = now;
        best_order = times_.order();
      }
    }
    if (now < earlier) earlier = now;
  }
  return times_.written(best_order);
}

}  // namespace stageline
