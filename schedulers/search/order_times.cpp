#include "schedulers/search/order_times.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr OpKind kinds[] = {OpKind::forward, OpKind::input_grad, OpKind::weight_grad};
constexpr Time nowhere = Time::min() / 4;  // the length of no way

OrderTimes::Node kind_number(OpKind kind) {
  return kind == OpKind::forward ? 0 : kind == OpKind::input_grad ? 1 : 2;
}

}  // namespace

OrderTimes::OrderTimes(const Problem& problem, bool for_span)
    : count_(static_cast<Node>(problem.microbatches)),
      for_span_(for_span),
      stages_(stage_times(problem, true)) {
  const std::size_t devices = problem.devices.size();
  order_.resize(devices);
  next_.resize(devices);
  free_.resize(devices);
  link_.resize(devices);
  for (std::size_t s = 0; s < stages_.size(); ++s) add_stage(s);
  timed_.resize(nodes());
  position_.resize(nodes());
  sequence_.resize(nodes());
  place_.resize(nodes());
  ways_.resize(nodes());
  missing_.resize(nodes());
  due_.resize(nodes());
}

void OrderTimes::add_stage(std::size_t stage) {
  const StageTimes& times = stages_[stage];
  is_chain_ = is_chain_ && times.needs.size() <= 1 && times.to.size() <= 1;
  const auto begin = static_cast<Node>(nodes());
  const auto numbers = static_cast<std::uint32_t>(stage_ops_.size());
  const auto first_of = [&](int other, OpKind kind) {
    return static_cast<Node>(as_size(other) * count_ * 3) + kind_number(kind);
  };
  for (const OpKind kind : kinds) {
    StageOp op;
    op.first = begin + kind_number(kind);
    op.stage = static_cast<std::uint32_t>(stage);
    op.device = static_cast<std::uint32_t>(times.device);
    op.kind = kind;
    const bool forward = kind == OpKind::forward;
    op.duration = forward                      ? times.forward
                  : kind == OpKind::input_grad ? times.backward
                                               : times.weight;
    const std::vector<Way>& ways = forward ? times.to : times.back;
    if (kind != OpKind::weight_grad && !ways.empty()) {
      const Way& way = ways.front();
      op.target = first_of(way.stage, kind);
      op.over_a_link = way.over_a_link;
      op.wire = way.wire;
      op.latency = way.latency;
    }
    if (forward && !times.needs.empty()) op.source = first_of(times.needs.front(), kind);
    if (kind == OpKind::input_grad && !times.to.empty()) {
      op.source = first_of(times.to.front().stage, kind);
    }
    stage_ops_.push_back(op);
  }
  const int missing[] = {static_cast<int>(times.needs.size()),
                         static_cast<int>(times.to.size()) + 1, 1};
  for (Node m = 0; m < count_; ++m) {
    for (std::uint32_t kind = 0; kind < 3; ++kind) {
      blank_.push_back({Time{}, static_cast<Node>(nodes()), missing[kind]});
      number_.push_back(numbers + kind);
    }
  }
}

void OrderTimes::read(const StepLists& lists) {
  for (std::size_t d = 0; d < order_.size(); ++d) {
    order_[d].clear();
    for (const Op op : lists[d]) {
      const std::size_t share = as_size(op.stage) * count_ + op.microbatch;
      order_[d].push_back(static_cast<Node>(share * 3) + kind_number(op.kind));
    }
  }
  is_timed_ = false;
}

StepLists OrderTimes::written(const NodeLists& order) const {
  StepLists lists(order.size());
  for (std::size_t d = 0; d < order.size(); ++d) {
    for (const Node node : order[d]) {
      const StageOp& one = op(node);
      lists[d].push_back(op_of(one.kind, static_cast<int>(one.stage), node / 3 % count_));
    }
  }
  return lists;
}

// ---- a whole order ------------------------------------------------------------------------------

bool OrderTimes::run() {
  inputs_ = blank_;
  std::fill(next_.begin(), next_.end(), 0);
  std::fill(free_.begin(), free_.end(), Time{});
  std::fill(link_.begin(), link_.end(), Time{});
  for (std::size_t d = 0; d < order_.size(); ++d) waiting_.push_back(d);
  std::uint32_t done = 0;
  while (!waiting_.empty()) {
    const std::size_t d = waiting_.back();
    waiting_.pop_back();
    const std::vector<Node>& list = order_[d];
    while (next_[d] < list.size() && inputs_[list[next_[d]]].missing == 0) {
      const Node node = list[next_[d]];
      position_[node] = next_[d]++;
      timed_[node].start = std::max(free_[d], inputs_[node].ready);
      free_[d] = end_of(node);
      sequence_[done] = node;
      place_[node] = done++;
      pass_on(node, d);
    }
  }
  is_timed_ = done == nodes();
  has_ways_ = false;
  return is_timed_;
}

void OrderTimes::pass_on(Node node, std::size_t device) {
  const StageOp& one = op(node);
  Timed& timed = timed_[node];
  const Time end = free_[device];
  timed.arrives = end;
  if (one.kind != OpKind::weight_grad) {
    arrive(node + 1, end, node, device);
    const StageTimes& stage = stages_[one.stage];
    for (const Way& way : one.kind == OpKind::forward ? stage.to : stage.back) {
      timed.arrives = end;
      if (way.over_a_link) {
        link_[device] = std::max(link_[device], end) + way.wire;
        timed.arrives = link_[device] + way.latency;
      }
      // The same micro-batch and kind of another stage.
      const Node there = static_cast<Node>(as_size(way.stage) * count_ * 3) + kind_number(one.kind);
      arrive(node - one.first + there, timed.arrives, node, device);
    }
  }
  timed.sent = link_[device];
}

void OrderTimes::arrive(Node node, Time at, Node from, std::size_t device) {
  Inputs& inputs = inputs_[node];
  if (at >= inputs.ready) {
    inputs.ready = at;
    inputs.cause = from;
  }
  if (--inputs.missing > 0) return;
  const std::size_t there = op(node).device;
  if (there == device || next_[there] == order_[there].size()) return;
  if (order_[there][next_[there]] == node) waiting_.push_back(there);
}

OrderTimes::Value OrderTimes::value() const {
  Value value;
  for (std::size_t d = 0; d < order_.size(); ++d) {
    if (order_[d].empty()) continue;
    const Time length = end_of(order_[d].back()) - begin_of(d);
    value.longest = std::max(value.longest, length);
    value.sum += length.count();
  }
  return value;
}

StepTimes OrderTimes::step_times() const {
  StepTimes times;
  for (const std::vector<Node>& list : order_) {
    if (list.empty()) continue;
    times.span = std::max(times.span, end_of(list.back()) - start_of(list.front()));
    times.makespan = std::max(times.makespan, end_of(list.back()));
  }
  return times;
}

std::optional<OrderTimes::Node> OrderTimes::cause_of(Node node) const {
  const Inputs& inputs = inputs_[node];
  if (inputs.cause == node || inputs.ready != start_of(node)) return std::nullopt;
  return inputs.cause;
}

// ---- a change of one list -----------------------------------------------------------------------

OrderTimes::Node OrderTimes::ahead_of(Node node) const {
  const std::uint32_t at = position_[node];
  return at == 0 ? none : order_[op(node).device][at - 1];
}

OrderTimes::Node OrderTimes::behind(Node node) const {
  const std::vector<Node>& list = order_[op(node).device];
  const std::size_t next = position_[node] + std::size_t{1};
  return next == list.size() ? none : list[next];
}

// Visits the ops of a chain that end, or arrive, before this one starts.
template <typename Visit>
void OrderTimes::each_before(Node node, const Visit& visit) const {
  if (const Node other = ahead_of(node); other != none) visit(other);
  if (op(node).kind != OpKind::forward) visit(node - 1);
  if (const Node other = source_of(node); other != none) visit(other);
}

template <typename Visit>
void OrderTimes::each_after(Node node, const Visit& visit) const {
  if (const Node other = behind(node); other != none) visit(other);
  if (op(node).kind != OpKind::weight_grad) visit(node + 1);
  if (const Node other = target_of(node); other != none) visit(other);
}

void OrderTimes::number_positions() {
  const std::vector<Node>& list = order_[device_];
  for (std::size_t i = from_; i < to_; ++i) position_[list[i]] = static_cast<std::uint32_t>(i);
}

// Only ops of the window have changed places. False where they need each other in a circle.
bool OrderTimes::sort_window() {
  window_.clear();
  for (std::uint32_t place = begin_; place < end_; ++place) {
    const Node node = sequence_[place];
    int missing = 0;
    each_before(node, [&](Node other) { missing += is_in_window(other) ? 1 : 0; });
    missing_[node] = missing;
    if (missing == 0) window_.push_back(node);
  }
  for (std::size_t i = 0; i < window_.size(); ++i) {
    each_after(window_[i], [&](Node other) {
      if (is_in_window(other) && --missing_[other] == 0) window_.push_back(other);
    });
  }
  return window_.size() == end_ - begin_;
}

// Times an op of a chain from what comes before. Whether what comes after sees any difference.
bool OrderTimes::time_again(Node node) {
  const StageOp& one = op(node);
  Inputs inputs{Time{}, node, 0};
  if (one.kind != OpKind::forward) inputs = {end_of(node - 1), node - 1, 0};
  if (const Node source = source_of(node);
      source != none && timed_[source].arrives >= inputs.ready) {
    inputs = {timed_[source].arrives, source, 0};
  }
  Time free{};
  Timed timed;
  if (const Node ahead = ahead_of(node); ahead != none) {
    free = end_of(ahead);
    timed.sent = timed_[ahead].sent;
  }
  timed.start = std::max(free, inputs.ready);
  const Time end = timed.start + one.duration;
  timed.arrives = end;
  if (one.over_a_link) {
    timed.sent = std::max(timed.sent, end) + one.wire;
    timed.arrives = timed.sent + one.latency;
  }
  earlier_.push_back({node, inputs_[node], timed_[node]});
  const bool differs = timed != timed_[node];
  inputs_[node] = inputs;
  timed_[node] = timed;
  return differs;
}

void OrderTimes::time_window() {
  ++change_;
  last_due_ = 0;
  const auto due = [&](Node node) {
    if (!is_in_window(node)) make_due(node);
  };
  for (const Node node : window_) {
    if (time_again(node)) each_after(node, due);
  }
  // It is behind another op than before.
  const std::vector<Node>& list = order_[device_];
  if (to_ < list.size()) make_due(list[to_]);
}

// False where an op is too late.
bool OrderTimes::time_later(Time most) {
  // A span that begins later may end later.
  const bool begins_stay = !for_span_ || begin_ > last_begin_;
  for (std::uint32_t place = end_; place <= last_due_; ++place) {
    const Node node = sequence_[place];
    if (due_[node] != change_ || !time_again(node)) continue;
    if (begins_stay && start_of(node) + ways_[node].from_start > most) return false;
    each_after(node, [&](Node other) { make_due(other); });
  }
  return true;
}

void OrderTimes::make_due(Node node) {
  due_[node] = change_;
  last_due_ = std::max(last_due_, place_[node]);
}

bool OrderTimes::change(std::size_t device, const std::vector<Node>& list, Time most) {
  if (is_chain_) {
    if (is_changed_) has_ways_ = false;  // they are those of an order that has been left
    if (!has_ways_) find_ways();
  }
  device_ = device;
  list_ = list;
  list_.swap(order_[device]);
  is_changed_ = true;
  if (!is_chain_) {
    is_changed_ = run();
    if (!is_changed_) list_.swap(order_[device]);
    return is_changed_;
  }
  earlier_.clear();
  window_.clear();
  from_ = 0;
  while (from_ < list.size() && list[from_] == list_[from_]) ++from_;
  to_ = list.size();
  while (to_ > from_ && list[to_ - 1] == list_[to_ - 1]) --to_;
  if (from_ == to_) {
    is_changed_ = false;
    return true;
  }
  begin_ = place_[list_[from_]];
  end_ = place_[list_[to_ - 1]] + 1;
  number_positions();
  if (sort_window()) {
    time_window();
    if (time_later(most)) {
      swap_window();
      return true;
    }
  }
  take_back();
  return false;
}

void OrderTimes::undo() {
  if (!is_changed_) return;
  if (is_chain_) {
    swap_window();
    take_back();
  } else {
    list_.swap(order_[device_]);
    is_changed_ = is_timed_ = false;
  }
}

// The window of the sequence for that which is not in it: as it has been sorted, or as it was.
void OrderTimes::swap_window() {
  for (std::uint32_t place = begin_; place < end_; ++place) {
    std::swap(sequence_[place], window_[place - begin_]);
    place_[sequence_[place]] = place;
  }
}

// All but the sequence.
void OrderTimes::take_back() {
  for (const Earlier& one : earlier_) {
    inputs_[one.node] = one.inputs;
    timed_[one.node] = one.timed;
  }
  list_.swap(order_[device_]);
  number_positions();
  is_changed_ = false;
}

void OrderTimes::restore() {
  if (!is_timed_) run();
}

void OrderTimes::find_ways() {
  last_begin_ = 0;
  for (const std::vector<Node>& list : order_) {
    if (!list.empty()) last_begin_ = std::max(last_begin_, place_[list.front()]);
  }
  for (auto at = sequence_.rbegin(); at != sequence_.rend(); ++at) {
    const StageOp& one = op(*at);
    Ways& ways = ways_[*at];
    const Node next = behind(*at);
    const Node target = target_of(*at);
    Time from_end = next == none ? -begin_of(one.device) : ways_[next].from_start;
    if (one.kind != OpKind::weight_grad) {
      from_end = std::max(from_end, ways_[*at + 1].from_start);
    }
    ways.from_link = next == none ? nowhere : ways_[next].from_link;
    if (one.over_a_link) {
      ways.from_link = one.wire + std::max(ways.from_link, one.latency + ways_[target].from_start);
      from_end = std::max(from_end, ways.from_link);
    } else if (target != none) {
      from_end = std::max(from_end, ways_[target].from_start);
    }
    ways.from_start = one.duration + from_end;
  }
  has_ways_ = true;
}

}  // namespace stageline
