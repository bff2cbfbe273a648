// Lowering: the lists of a program become one array of tasks in a topological order. Every lane is
// walked until its next op needs a product that is not made yet; the lane then waits in the slot of
// that product and is walked again once it is made. Each op is visited once or twice, so lowering
// is linear.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/lower/lowering.hpp"

namespace stageline {

namespace {

// Kept from one lowering of a thread to the next: the first touch of new pages takes long.
struct Buffers {
  std::vector<Slot> slots;
  std::vector<Op> ops;
};
thread_local Buffers kept;
constexpr std::size_t most_kept = std::size_t{1} << 27;  // bytes of each

template <class T>
void keep(std::vector<T>& to, std::vector<T>& from) {
  if (from.capacity() > to.capacity() && from.capacity() * sizeof(T) <= most_kept) to.swap(from);
}

}  // namespace

Lowering::~Lowering() {
  keep(kept.slots, slot_);
  keep(kept.ops, ops_);
}

Lowering::Lowering(const Program& program, const Costs& costs, bool patterns)
    : program_(program),
      stages_(stage_graph(program)),
      index_(program, stages_),
      charges_(program, costs, stages_),
      patterns_(program, stages_, index_, slot_),
      use_patterns_(patterns),
      blocks_(program.settings.messages != Messages::async) {
  slot_.swap(kept.slots);
  ops_.swap(kept.ops);
}

TaskGraph Lowering::lower() {
  start();
  walk_queue();
  for (std::uint32_t lane = 0; lane < head_.size(); ++lane) {
    if (head_[lane] != end_[lane]) throw deadlock_of(standstill(), lane);
  }
  out_.finish();
  finish_lanes();
  charges_.give_paths(out_.graph);
  charges_.set_pace(out_.graph);
  charges_.give_bytes(out_.graph);
  check_length();
  out_.graph.devices = program_.devices;
  return std::move(out_.graph);
}

void Lowering::start() {
  make_lanes();
  if (forgiving_) find_makers();
  for (std::uint32_t lane = 0; lane < head_.size(); ++lane) queue_.push_back(lane);
}

void Lowering::walk_queue() {
  while (!queue_.empty()) {
    // First in, first out: lanes take turns, so what is near in time is near in memory.
    std::swap(queue_, turn_);
    for (const std::uint32_t lane : turn_) walk(lane);
    turn_.clear();
  }
}

// The number of ops by device and kind of list.
std::vector<std::uint32_t> Lowering::count_ops() {
  std::vector<std::uint32_t> count(program_.devices.size() * lane_kinds);
  for (std::size_t device = 0; device < program_.ops.size(); ++device) {
    std::array<std::uint32_t, op_kinds> by_kind{};
    for (const Op op : program_.ops[device]) {
      ++nth(by_kind, op.kind);
      any_overlapped_ = any_overlapped_ || op.overlapped;
    }
    for (std::size_t kind = 0; kind < op_kinds; ++kind) {
      const LaneKind list = list_of(static_cast<OpKind>(kind));
      count[device * lane_kinds + as_size(list)] += by_kind[kind];
    }
  }
  return count;
}

// The distance from a list of that many ops to the next: an odd number of cache lines. Lists are
// walked side by side, and powers of two would put them all in one set of the cache.
static std::uint32_t apart(std::uint32_t ops) {
  constexpr std::uint32_t line = 64 / sizeof(Op);
  return ((ops / line + 1) | 1) * line;
}

// Halves of a pair are adjacent in the list of the compute lane, too.
void Lowering::check_pairs() const {
  for (std::size_t device = 0; device < program_.ops.size(); ++device) {
    const std::vector<Op>& list = program_.ops[device];
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].overlapped || is_pair(list, i)) continue;
      // Without the position: passes may have moved the op since the program was written.
      throw ProgramError(
          fmt::format("{} ({}): {}", program_.devices[device], print(list[i]), no_pair));
    }
  }
}

// The ops of each lane in program order; what they make is pending. Receives have no list of their
// own: they wait for no turn, or block in the compute lane.
void Lowering::make_lanes() {
  const std::vector<std::uint32_t> count = count_ops();
  if (any_overlapped_) check_pairs();
  std::vector<std::uint32_t> lane_at(count.size(), no_lane);
  std::uint32_t total = 0;
  std::uint32_t room = 0;
  for (std::size_t at = 0; at < count.size(); ++at) {
    const auto kind = static_cast<LaneKind>(at % lane_kinds);
    if (count[at] == 0 || kind == LaneKind::receive) continue;
    lane_at[at] = static_cast<std::uint32_t>(out_.graph.lanes.size());
    out_.graph.lanes.push_back({static_cast<int>(at / lane_kinds), kind});
    head_.push_back(room);
    end_.push_back(room + count[at]);
    total += count[at];
    room += apart(count[at]);
  }
  reserve_pages(slot_, index_.size() + 1);
  slot_.assign(index_.size() + 1, nobody);  // and the spare one
  reserve_pages(ops_, room);
  if (ops_.size() < room) ops_.resize(room);
  std::vector<std::uint32_t> fill = head_;
  for (std::size_t device = 0; device < program_.ops.size(); ++device) {
    std::array<std::uint32_t, op_kinds> lane_of_kind{};
    for (std::size_t kind = 0; kind < op_kinds; ++kind) {
      const LaneKind list = list_of(static_cast<OpKind>(kind));
      lane_of_kind[kind] = lane_at[device * lane_kinds + as_size(list)];
    }
    for (const Op op : program_.ops[device]) {
      const std::uint32_t lane = nth(lane_of_kind, op.kind);
      if (lane == no_lane) continue;  // a RECV, which makes nothing
      ops_[fill[lane]++] = op;
      OpPattern& pattern = patterns_.of(op);
      if (!blocks_ && pattern.lane != lane) {
        const bool first = pattern.lane == OpPattern::no_lane;
        pattern.lane = first ? static_cast<std::uint16_t>(lane) : OpPattern::several;
      }
      patterns_.for_made(pattern, op, [&](std::size_t place) { slot_[place] = pending; });
    }
  }
  next_waiter_.assign(head_.size(), no_lane);
  if (blocks_) {
    stream_.resize(head_.size());
    posted_.assign(index_.size(), no_lane);
  }
  out_.reserve(total, any_overlapped_);
}

bool Lowering::exists(Product product, int at, std::uint32_t number, int part) const {
  if (!index_.has(product)) return false;
  const std::int64_t place = index_.index(product, at, number, part);
  return place >= 0 && nth(slot_, place) != nobody;
}

// Adds the task that made the slot's product to the needs of the next one. If none has, the lane
// waits, and the answer is false.
inline bool Lowering::slot_met(Slot& slot, Op op, std::uint32_t lane) {
  if (slot >= waited_for) {
    if (slot == nobody) explain_missing(standstill(), op);
    next_waiter_[lane] = slot == pending ? no_lane : slot & ~waited_for;
    slot = waited_for | lane;
    return false;
  }
  if (out_.graph.lane[slot] != lane) out_.need(slot);
  return true;
}

// The same for all that the op needs.
inline bool Lowering::all_met(OpPattern& pattern, Op op, std::uint32_t lane) {
  if (!pattern.covers(op.microbatch)) return met_by_rules(pattern, op, lane);
  for (std::uint32_t i = 0; i < pattern.needs; ++i) {
    Slot& slot = slot_[pattern.need_index(i, op.microbatch)];
    if ((pattern.in_lane >> i & 1U) != 0 && slot < waited_for) continue;
    if (!slot_met(slot, op, lane)) return false;
  }
  return true;
}

bool Lowering::met(Op op, std::uint32_t lane) { return all_met(patterns_.of(op), op, lane); }

bool Lowering::met_by_rules(OpPattern& pattern, Op op, std::uint32_t lane) {
  if (!pattern.needs_known && use_patterns_ && !forgiving_) {
    patterns_.find_needs(pattern, op);
    return all_met(pattern, op, lane);
  }
  if (pattern.span > 0) return span_met(pattern, op, lane);
  bool all = true;
  needs(
      program_, stages_, op,
      [&](Product product, int at, std::uint32_t number, int part) {
        return exists(product, at, number, part);
      },
      [&](Product product, int at, std::uint32_t number, int part) {
        all = all && met_at(index_.index(product, at, number, part), op, lane);
      });
  return all;
}

bool Lowering::span_met(const OpPattern& pattern, Op op, std::uint32_t lane) {
  const std::uint32_t first = op.microbatch * pattern.span;
  const std::uint32_t last = std::min(first + pattern.span, program_.total_microbatches());
  for (std::uint32_t number = first; number < last; ++number) {
    if (!slot_met(slot_[pattern.need_index(0, number)], op, lane)) return false;
  }
  return true;
}

bool Lowering::met_at(std::int64_t place, Op op, std::uint32_t lane) {
  if (forgiving_ && forgiven(place, lane)) return true;
  if (place < 0) explain_missing(standstill(), op);
  return slot_met(nth(slot_, place), op, lane);
}

// Wakes the lanes that wait for what the op makes.
inline void Lowering::make(const OpPattern& pattern, Op op, std::uint32_t task) {
  patterns_.for_made(pattern, op, [&](std::size_t place) {
    const Slot slot = slot_[place];
    slot_[place] = task;
    if (slot < waited_for || slot >= pending) return;
    for (std::uint32_t lane = slot & ~waited_for; lane != no_lane; lane = next_waiter_[lane]) {
      queue_.push_back(lane);
    }
  });
}

void Lowering::done(Op op, std::uint32_t task) { make(patterns_.of(op), op, task); }

inline Charge Lowering::charge_of(OpPattern& pattern, Op op, std::uint32_t lane) {
  if (!pattern.charged) find_charge(pattern, op, lane);
  return {pattern.duration, pattern.path};
}

void Lowering::find_charge(OpPattern& pattern, Op op, std::uint32_t lane) {
  const Charge charge = charges_.of(op, lane);
  pattern.duration = charge.duration;
  pattern.path = charge.path;
  pattern.charged = patterns_.owns(pattern) && charges_.same_for_all(op);
}

Charge Lowering::message_charge(Op send, std::uint32_t lane) {
  const Charge charge = charge_of(patterns_.of(send), send, lane);
  charges_.used(charge.path, lane);
  return charge;
}

// `plain`: the lanes are lists, and no wait is given up.
template <bool plain>
void Lowering::walk(std::uint32_t lane) {
  while (head_[lane] != end_[lane]) {
    const std::uint32_t head = head_[lane];
    const Op op = ops_[head];
    if (!plain && blocks_ && cargo_of(op.kind)) {
      if (!exchanged(lane)) return;
      continue;
    }
    // There are more lanes than the processor follows streams by itself.
    __builtin_prefetch(ops_.data() + std::min(head + 16, end_[lane]));
    const bool pair = !plain && op.overlapped && head + 1 != end_[lane];
    const Op second = pair ? ops_[head + 1] : Op{};
    const std::uint32_t needs_before = out_.needs();
    OpPattern& pattern = patterns_.of(op);
    if (!all_met(pattern, op, lane) || (pair && !met(second, lane))) {
      out_.drop_needs_from(needs_before);
      return;
    }
    const std::uint32_t task = out_.tasks();
    if (!plain && blocks_) follow(lane, lane, needs_before);
    const Charge charge = charge_of(pattern, op, lane);
    const Time time = pair ? charges_.of_pair(op, second) : charge.duration;
    out_.add(op, lane, charge.path, time, second);
    if (plain) ops_[head].microbatch = task;  // for finish_lanes()
    head_[lane] = head + (pair ? 2 : 1);
    make(pattern, op, task);
    if (pair) done(second, task);
    if (!plain && blocks_) stream_[lane].before.assign(1, task);
    if (!plain && forgiving_) given_up_ = no_lane;
  }
}

void Lowering::walk(std::uint32_t lane) {
  if (lanes_are_lists() && !forgiving_) {
    walk<true>(lane);
  } else {
    walk<false>(lane);
  }
}

void Lowering::finish_lanes() {
  TaskGraph& graph = out_.graph;
  if (lanes_are_lists()) {
    reserve_pages(graph.lane_task, graph.tasks());
    graph.lane_begin.assign(1, 0);
    std::uint32_t begin = 0;
    for (const std::uint32_t end : end_) {
      for (std::uint32_t at = begin; at != end; ++at) {
        graph.lane_task.push_back(ops_[at].microbatch);
      }
      begin += apart(end - begin);
      graph.lane_begin.push_back(static_cast<std::uint32_t>(graph.lane_task.size()));
    }
    return;
  }
  graph.lane_begin.assign(graph.lanes.size() + 1, 0);
  for (const std::uint16_t lane : graph.lane) ++graph.lane_begin[lane + 1U];
  for (std::size_t i = 1; i < graph.lane_begin.size(); ++i) {
    graph.lane_begin[i] += graph.lane_begin[i - 1];
  }
  graph.lane_task.resize(graph.lane.size());
  std::vector<std::uint32_t> fill(graph.lane_begin.begin(), graph.lane_begin.end() - 1);
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    graph.lane_task[fill[graph.lane[task]]++] = task;
  }
}

// A run is never longer than the sum of all its tasks.
void Lowering::check_length() const {
  const TaskGraph& graph = out_.graph;
  TaskWriter::Wide late = 0;
  const bool lags = std::any_of(graph.paths.begin(), graph.paths.end(),
                                [](const Path& path) { return path.lag > Time{}; });
  if (lags) {
    for (const std::uint16_t path : graph.path_of) late += graph.paths[path].lag.count();
  }
  TaskWriter::Wide sum = out_.busy() + late;
  if (const double slowdown = charges_.most_slowdown(); slowdown > 1) {
    sum += static_cast<TaskWriter::Wide>(static_cast<double>(out_.busy()) * (slowdown - 1));
  }
  if (sum <= longest_run.count()) return;
  throw UsageError(fmt::format(
      "all that devices and links do takes {:.3g} s together ({:.3g} s of it latency), longer than the clock's {:.3g} s (53 days); check the units, or ask for fewer micro-batches or steps",
      static_cast<double>(sum) / 1e12, static_cast<double>(late) / 1e12, to_seconds(longest_run)));
}

TaskGraph compile(const Program& program, const Costs& costs) {
  return Lowering(program, costs).lower();
}

bool shares_resources(const TaskGraph& graph) {
  return std::any_of(graph.paths.begin(), graph.paths.end(),
                     [](const Path& path) { return !path.resources.empty(); });
}

}  // namespace stageline
