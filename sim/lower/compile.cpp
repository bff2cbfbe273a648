// Lowering: the lists of a program become one array of tasks in a topological order. Every lane is
// walked until its next op needs something that is not made yet; the lane then waits in that
// product's slot and is taken up again when it is made. Each op is visited once or twice, so the
// whole is linear.
//
// Where messages block, they stand in the compute lane's list. A lane that comes to one posts it;
// whoever posts second makes the tasks of both ends. They run in lanes of their own: SEND behind
// what is before either end in its list, RECV (the latency) behind SEND, what follows behind both.
//
//     gpu0  │ F ├──┐          ┌───│ what follows SEND
//           └───┘  ▼          │
//                 [ SEND ]────┤          a batch is several of them side by side: what follows it
//           ┌───┐  ▲          ▼          waits for all
//     gpu1  │ B ├──┘       [ RECV ]───│ what follows RECV
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "sim/errors.hpp"
#include "sim/lower/charges.hpp"
#include "sim/lower/patterns.hpp"
#include "sim/lower/standstill.hpp"
#include "sim/pages.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"

namespace stageline {
namespace {

class Lowering {
 public:
  Lowering(const Program& program, const Costs& costs)
      : program_(program),
        stages_(stage_graph(program)),
        index_(program, stages_),
        charges_(program, costs, stages_),
        patterns_(program, stages_, index_, slot_),
        blocks_(program.messages != Messages::async) {}

  TaskGraph lower() {
    start();
    go_on();
    for (std::uint32_t lane = 0; lane < head_.size(); ++lane) {
      if (head_[lane] != end_[lane]) throw deadlock_of(standstill(), lane);
    }
    finish_lanes();
    charges_.give_paths(graph_);
    check_length();
    graph_.devices = program_.devices;
    return std::move(graph_);
  }

  /// The cycles in which lanes stand still, until `most` are found: of each, one wait is given up
  /// after it is told. So is every wait for what nobody makes, or for what stands later in the same
  /// lane: those are not what is asked for.
  std::vector<Deadlock> deadlocks(std::size_t most) {
    forgiving_ = true;
    std::vector<Deadlock> found;
    start();
    while (true) {
      go_on();
      const std::size_t before = found.size();
      std::vector<std::uint32_t> given_up;
      for (std::uint32_t lane = 0; lane < head_.size() && found.size() < most; ++lane) {
        if (head_[lane] == end_[lane]) continue;
        std::vector<std::uint32_t> around;
        Deadlock told = deadlock_of(standstill(), lane, &around);
        const bool again =
            std::find(given_up.begin(), given_up.end(), around.front()) != given_up.end();
        if (again) continue;
        given_up.push_back(around.front());
        found.push_back(std::move(told));
      }
      if (found.size() == before || found.size() >= most) return found;
      for (const std::uint32_t lane : given_up) give_up(lane);
    }
  }

 private:
  void start() {
    make_lanes(count_ops());
    charges_.make_room();
    graph_.need_begin.push_back(0);
    for (std::uint32_t lane = 0; lane < head_.size(); ++lane) queue_.push_back(lane);
  }

  void go_on() {
    while (!queue_.empty()) {
      // First in, first out: lanes take turns, so what is near in time is near in memory.
      std::swap(queue_, turn_);
      for (const std::uint32_t lane : turn_) {
        if (blocks_) {
          walk<true>(lane);
        } else {
          walk<false>(lane);
        }
      }
      turn_.clear();
    }
  }

  LaneKind list_of(OpKind kind) const {
    return blocks_ && cargo_of(kind) ? LaneKind::compute : lane_of(program_, kind);
  }

  // The number of ops by device and lane kind. Marks all that they make as pending.
  std::vector<std::uint32_t> count_ops() {
    for (std::size_t kind = 0; kind < op_kinds; ++kind) {
      list_of_[kind] = list_of(static_cast<OpKind>(kind));
    }
    reserve_pages(slot_, index_.size());
    slot_.assign(index_.size(), nobody);
    std::vector<std::uint32_t> count(program_.devices.size() * lane_kinds);
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      std::array<std::uint32_t, lane_kinds> here{};
      for (const Op op : program_.ops[device]) {
        ++here[static_cast<std::size_t>(list_of_[static_cast<std::size_t>(op.kind)])];
        patterns_.for_made(patterns_.of(op), op,
                           [&](std::size_t place) { slot_[place] = pending; });
      }
      std::copy(here.begin(), here.end(),
                count.begin() + static_cast<std::ptrdiff_t>(device * lane_kinds));
    }
    return count;
  }

  // The ops of each lane in program order. Receives have no turn of their own, unless they block.
  void make_lanes(const std::vector<std::uint32_t>& count) {
    std::vector<std::uint32_t> lane_at(count.size(), no_lane);
    std::uint32_t total = 0;
    for (std::size_t at = 0; at < count.size(); ++at) {
      const auto kind = static_cast<LaneKind>(at % lane_kinds);
      if (count[at] == 0 || kind == LaneKind::receive) continue;
      lane_at[at] = static_cast<std::uint32_t>(graph_.lanes.size());
      graph_.lanes.push_back({static_cast<int>(at / lane_kinds), kind});
      head_.push_back(total);
      total += count[at];
      end_.push_back(total);
    }
    reserve_pages(ops_, total);
    ops_.resize(total);
    std::vector<std::uint32_t> fill = head_;
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      for (const Op op : program_.ops[device]) {
        const std::uint32_t lane =
            lane_at[device * lane_kinds +
                    static_cast<std::size_t>(list_of_[static_cast<std::size_t>(op.kind)])];
        if (lane == no_lane) continue;
        ops_[fill[lane]++] = op;
        any_overlapped_ = any_overlapped_ || op.overlapped;
      }
    }
    next_waiter_.assign(graph_.lanes.size(), no_lane);
    if (blocks_) {
      stream_.resize(graph_.lanes.size());
      posted_.assign(index_.size(), no_lane);
    }
    if (forgiving_) find_makers();
    reserve_pages(graph_.op, total);
    reserve_pages(graph_.lane, total);
    reserve_pages(graph_.path_of, total);
    reserve_pages(graph_.duration, total);
    reserve_pages(graph_.need_begin, total + std::size_t{1});
    reserve_pages(graph_.need, total + total / 2);
    if (any_overlapped_) reserve_pages(graph_.partner, total);
    reserve_pages(graph_.lane_task, total);
    if (lanes_are_lists()) graph_.lane_task.resize(total);
  }

  bool exists(Product product, int at, std::uint32_t number, int part) const {
    if (!index_.has(product)) return false;
    const std::int64_t slot = index_.index(product, at, number, part);
    return slot >= 0 && slot_[static_cast<std::size_t>(slot)] != nobody;
  }

  // Adds what `op` needs to graph_.need; false, and the lane waits, when something is not made yet.
  bool met(OpPattern& pattern, Op op, std::uint32_t lane) {
    if (!pattern.needs_known) patterns_.find_needs(pattern, op);
    if (pattern.covers(op.microbatch) && !forgiving_) {
      for (std::uint8_t i = 0; i < pattern.needs; ++i) {
        Slot& slot = slot_[pattern.need[i].at(op.microbatch)];
        if (slot >= waited_for) {
          await(slot, op, lane);
          return false;
        }
        if (graph_.lane[slot] != lane) graph_.need.push_back(slot);
      }
      return true;
    }
    bool all = true;
    needs(
        program_, stages_, op,
        [&](Product product, int at, std::uint32_t number, int part) {
          return exists(product, at, number, part);
        },
        [&](Product product, int at, std::uint32_t number, int part) {
          all = all && got(index_.index(product, at, number, part), op, lane);
        });
    return all;
  }

  bool got(std::int64_t place, Op op, std::uint32_t lane) {
    if (forgiving_ && forgiven(place, lane)) return true;
    if (place < 0) explain_missing(standstill(), op);
    Slot& slot = slot_[static_cast<std::size_t>(place)];
    if (slot < waited_for) {
      if (graph_.lane[slot] != lane) graph_.need.push_back(slot);
      return true;
    }
    await(slot, op, lane);
    return false;
  }

  // The lane waits for what the slot stands for, which `op` needs.
  void await(Slot& slot, Op op, std::uint32_t lane) {
    if (slot == nobody) explain_missing(standstill(), op);
    next_waiter_[lane] = slot == pending ? no_lane : slot & ~waited_for;
    slot = waited_for | lane;
  }

  template <bool blocks>
  void walk(std::uint32_t lane) {
    while (head_[lane] != end_[lane]) {
      const Op op = ops_[head_[lane]];
      if constexpr (blocks) {
        if (cargo_of(op.kind)) {
          if (!exchanged(lane)) return;
          continue;
        }
      }
      // There are more lanes than the processor follows streams.
      __builtin_prefetch(ops_.data() + std::min(head_[lane] + 16, end_[lane]));
      const bool pair = op.overlapped && head_[lane] + 1 != end_[lane];
      const std::size_t needs_before = graph_.need.size();
      OpPattern& pattern = patterns_.of(op);
      for (std::uint8_t i = 0; i < pattern.makes; ++i) {
        __builtin_prefetch(slot_.data() + pattern.make[i].at(op.microbatch + 16), 1);
      }
      if (!met(pattern, op, lane) ||
          (pair && !met(patterns_.of(ops_[head_[lane] + 1]), ops_[head_[lane] + 1], lane))) {
        graph_.need.resize(needs_before);
        return;
      }
      const auto task = graph_.tasks();
      if constexpr (blocks) follow(lane, lane, needs_before);
      const Charge charge = charge_of(pattern, op, lane);
      Time time = charge.duration;
      graph_.op.push_back(op);
      graph_.lane.push_back(static_cast<std::uint16_t>(lane));
      graph_.path_of.push_back(charge.path);
      if (lanes_are_lists()) graph_.lane_task[head_[lane]] = task;
      ++head_[lane];
      done(pattern, op, task);
      if (any_overlapped_) graph_.partner.push_back(pair ? ops_[head_[lane]] : Op{});
      if (pair) {
        const Op second = ops_[head_[lane]++];
        time = charges_.of_pair(time, second);
        done(patterns_.of(second), second, task);
      }
      graph_.duration.push_back(time);
      busy_ += time.count();
      graph_.need_begin.push_back(static_cast<std::uint32_t>(graph_.need.size()));
      if constexpr (blocks) stream_[lane].before.assign(1, task);
      if (forgiving_) given_up_ = no_lane;
    }
  }

  void done(const OpPattern& pattern, Op op, std::uint32_t task) {
    patterns_.for_made(pattern, op, [&](std::size_t place) {
      Slot& slot = slot_[place];
      for (std::uint32_t lane = slot == pending ? no_lane : slot & ~waited_for; lane != no_lane;
           lane = next_waiter_[lane]) {
        queue_.push_back(lane);
      }
      slot = task;
    });
  }

  Charge charge_of(OpPattern& pattern, Op op, std::uint32_t lane) {
    if (!pattern.charged) {
      const Charge charge = charges_.of(op, lane);
      pattern.duration = charge.duration;
      pattern.path = charge.path;
      pattern.charged = charges_.same_for_all(op) && &pattern != &patterns_.none();
    }
    if (blocks_) charges_.used(pattern.path, lane);
    return {pattern.duration, pattern.path};
  }

  // ---- messages that block: a lane's list is one stream of computing and messages

  struct Stream {
    std::vector<std::uint32_t> before;  // tasks that whatever is next in the list waits for
    std::vector<std::uint32_t> batch;   // tasks made of the batch that the lane stands at
    std::uint32_t left = 0;             // messages of it that the other end has not posted
    bool posted = false;
  };

  // Behind what stands ahead in that lane's list; not again what is needed already, nor what stands
  // ahead in the task's own lane.
  void follow(std::uint32_t list, std::uint32_t lane, std::size_t needs_before) {
    for (const std::uint32_t task : stream_[list].before) {
      const auto from = graph_.need.begin() + static_cast<std::ptrdiff_t>(needs_before);
      if (graph_.lane[task] == lane ||
          std::find(from, graph_.need.end(), task) != graph_.need.end())
        continue;
      graph_.need.push_back(task);
    }
  }

  std::size_t message_slot(Op op) const {
    return static_cast<std::size_t>(
        index_.index(sent(*cargo_of(op.kind)), wire_of(stages_, op), op.microbatch, 0));
  }

  // The lane stands at a batch: posts it, once what its SENDs carry is made; false while it waits.
  bool exchanged(std::uint32_t lane) {
    Stream& here = stream_[lane];
    const std::uint32_t last = head_[lane] + batch_size(standstill(), lane);
    if (!here.posted) {
      const std::size_t needs_before = graph_.need.size();
      for (std::uint32_t at = head_[lane]; at != last; ++at) {
        const bool made = !is_send(ops_[at].kind) || met(patterns_.of(ops_[at]), ops_[at], lane);
        graph_.need.resize(needs_before);
        if (!made) return false;
      }
      here.posted = true;
      here.left = last - head_[lane];
      for (std::uint32_t at = head_[lane]; at != last; ++at) post(lane, ops_[at]);
    }
    if (here.left > 0) return false;
    here.before.swap(here.batch);
    here.batch.clear();
    here.posted = false;
    head_[lane] = last;
    if (forgiving_) given_up_ = no_lane;
    return true;
  }

  void post(std::uint32_t lane, Op op) {
    std::uint32_t& other = posted_[message_slot(op)];
    if (other == no_lane) {
      other = lane;
    } else if (other == gone) {
      --stream_[lane].left;
    } else if (is_send(op.kind)) {
      make_message(op, lane, other, other);
    } else {
      make_message(other_end(stages_, op), other, lane, other);
    }
  }

  // The SEND's task and, right behind it, the RECV's.
  void make_message(Op send, std::uint32_t from, std::uint32_t to, std::uint32_t waiting) {
    const auto task = graph_.tasks();
    const std::size_t needs_before = graph_.need.size();
    const Op receive = other_end(stages_, send);
    const std::uint32_t send_lane = channel(from, send, LaneKind::send);
    const std::uint32_t receive_lane = channel(to, receive, LaneKind::receive);
    OpPattern& pattern = patterns_.of(send);
    if (!forgiving_) met(pattern, send, send_lane);  // as it was when it was posted
    follow(from, send_lane, needs_before);
    follow(to, send_lane, needs_before);
    const Charge charge = charge_of(pattern, send, send_lane);
    add(send, send_lane, charge.path, charge.duration);
    graph_.need.push_back(task);
    add(receive, receive_lane, 0, charges_.latency(send));
    done(pattern, send, task + 1);
    for (const auto& [lane, made] : {std::pair(from, task), std::pair(to, task + 1)}) {
      stream_[lane].batch.push_back(made);
      if (--stream_[lane].left == 0 && lane == waiting) queue_.push_back(lane);
    }
  }

  void add(Op op, std::uint32_t lane, std::uint16_t path, Time duration) {
    graph_.op.push_back(op);
    graph_.lane.push_back(static_cast<std::uint16_t>(lane));
    graph_.path_of.push_back(path);
    if (any_overlapped_) graph_.partner.emplace_back();
    graph_.duration.push_back(duration);
    busy_ += duration.count();
    graph_.need_begin.push_back(static_cast<std::uint32_t>(graph_.need.size()));
  }

  // The how-manieth send or receive of its batch has the how-manieth such lane of the device, so
  // that those of one batch run side by side.
  std::uint32_t channel(std::uint32_t list, Op op, LaneKind kind) {
    std::uint32_t number = 0;
    for (std::uint32_t at = head_[list]; ops_[at] != op; ++at) {
      if (is_send(ops_[at].kind) == (kind == LaneKind::send)) ++number;
    }
    auto& lanes = channels_[{list, kind}];
    while (number >= lanes.size()) {
      if (graph_.lanes.size() >= 65535) {
        throw ProgramError("more than 65535 lanes: too many messages stand side by side");
      }
      lanes.push_back(static_cast<std::uint32_t>(graph_.lanes.size()));
      graph_.lanes.push_back({graph_.lanes[list].device, kind});
    }
    return lanes[number];
  }

  // ---- looking for all deadlocks

  void find_makers() {
    maker_.assign(index_.size(), no_lane);
    for (std::uint32_t lane = 0; lane < head_.size(); ++lane) {
      for (std::uint32_t at = head_[lane]; at != end_[lane]; ++at) {
        const Op op = ops_[at];
        if (cargo_of(op.kind) && (!blocks_ || !is_send(op.kind))) {
          if (blocks_) maker_[message_slot(op)] = lane;  // for who reads it, its RECV
          continue;
        }
        if (cargo_of(op.kind)) continue;
        makes(stages_, op, [&](Product product, int of, std::uint32_t number, int part) {
          maker_[static_cast<std::size_t>(index_.index(product, of, number, part))] = lane;
        });
      }
    }
  }

  bool forgiven(std::int64_t place, std::uint32_t lane) const {
    if (place < 0) return true;
    const Slot slot = slot_[static_cast<std::size_t>(place)];
    if (slot == nobody) return true;
    return slot >= waited_for &&
           (lane == given_up_ || maker_[static_cast<std::size_t>(place)] == lane);
  }

  // Out of the list of those that wait for a product.
  void stop_waiting(std::uint32_t lane) {
    for (Slot& slot : slot_) {
      if (slot < waited_for || slot == pending || slot == nobody) continue;
      if (slot == (waited_for | lane)) {
        slot = next_waiter_[lane] == no_lane ? pending : waited_for | next_waiter_[lane];
        return;
      }
      for (std::uint32_t at = slot & ~waited_for; at != no_lane; at = next_waiter_[at]) {
        if (next_waiter_[at] != lane) continue;
        next_waiter_[at] = next_waiter_[lane];
        return;
      }
    }
  }

  // The lane goes on, whatever it waits for.
  void give_up(std::uint32_t lane) {
    stop_waiting(lane);
    if (blocks_ && stream_[lane].posted) {
      const std::uint32_t last = head_[lane] + batch_size(standstill(), lane);
      for (std::uint32_t at = head_[lane]; at != last; ++at) {
        const std::size_t slot = message_slot(ops_[at]);
        if (posted_[slot] == lane && slot_[slot] >= waited_for) posted_[slot] = gone;
      }
      stream_[lane].left = 0;
    } else {
      given_up_ = lane;
    }
    if (blocks_) {
      walk<true>(lane);
    } else {
      walk<false>(lane);
    }
    given_up_ = no_lane;
  }

  void finish_lanes() {
    if (lanes_are_lists()) {
      graph_.lane_begin.assign(1, 0);
      graph_.lane_begin.insert(graph_.lane_begin.end(), end_.begin(), end_.end());
      return;
    }
    graph_.lane_begin.assign(graph_.lanes.size() + 1, 0);
    for (const std::uint16_t lane : graph_.lane) ++graph_.lane_begin[lane + 1U];
    for (std::size_t i = 1; i < graph_.lane_begin.size(); ++i) {
      graph_.lane_begin[i] += graph_.lane_begin[i - 1];
    }
    graph_.lane_task.resize(graph_.lane.size());
    std::vector<std::uint32_t> fill(graph_.lane_begin.begin(), graph_.lane_begin.end() - 1);
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      graph_.lane_task[fill[graph_.lane[task]]++] = task;
    }
  }

  // Each op of a list is one task of that lane: none is half of a pair or in a lane of its own.
  bool lanes_are_lists() const { return !blocks_ && !any_overlapped_; }

  // A run is never longer than all its tasks one after another.
  void check_length() const {
    Wide late = 0;
    const bool lags = std::any_of(graph_.paths.begin(), graph_.paths.end(),
                                  [](const Path& path) { return path.lag > Time{}; });
    if (lags) {
      for (const std::uint16_t path : graph_.path_of) late += graph_.paths[path].lag.count();
    }
    if (busy_ + late <= longest_run.count()) return;
    throw UsageError(fmt::format(
        "the program may last {:.3g} s, the sum of all that its devices and links do ({:.3g} s of "
        "it latency), and at most {:.3g} s (53 days) can be added up; check the units of times and "
        "links, or ask for fewer micro-batches or steps",
        static_cast<double>(busy_ + late) / 1e12, static_cast<double>(late) / 1e12,
        to_seconds(longest_run)));
  }

  Standstill standstill() const {
    return {program_, stages_, index_, slot_, ops_, head_, end_, posted_};
  }

  const Program& program_;
  StageGraph stages_;
  ProductIndex index_;
  std::vector<Slot> slot_;  // by product
  Charges charges_;
  OpPatterns patterns_;
  bool blocks_;
  std::array<LaneKind, op_kinds> list_of_{};  // by op kind
  std::vector<Op> ops_;                       // by lane
  std::vector<std::uint32_t> head_;           // by lane that has a list, into ops_
  std::vector<std::uint32_t> end_;            //
  std::vector<std::uint32_t> next_waiter_;    // by lane: who else waits for the same product
  std::vector<std::uint32_t> queue_;          // lanes to walk
  std::vector<std::uint32_t> turn_;
  bool any_overlapped_ = false;
  __extension__ using Wide = __int128;
  Wide busy_ = 0;  // the sum of all durations, ps
  TaskGraph graph_;
  // Where messages block:
  std::vector<Stream> stream_;         // by lane
  std::vector<std::uint32_t> posted_;  // by slot of a message: the lane that has posted it, or gone
  std::map<std::pair<std::uint32_t, LaneKind>, std::vector<std::uint32_t>> channels_;  // by lane
  // Where all deadlocks are looked for:
  bool forgiving_ = false;
  std::vector<std::uint32_t> maker_;  // by slot: the lane that makes it, messages aside
  std::uint32_t given_up_ = no_lane;  // this lane's next op waits for nothing
};

}  // namespace

TaskGraph compile(const Program& program, const Costs& costs) {
  return Lowering(program, costs).lower();
}

std::vector<Deadlock> deadlocks_of(const Program& program, const Costs& costs, std::size_t most) {
  return Lowering(program, costs).deadlocks(most);
}

Time duration_of(const Program& program, const Costs& costs, Op op) {
  const StageGraph stages = stage_graph(program);
  return Charges(program, costs, stages).duration(op);
}

Bytes message_bytes(const Program& program, const Costs& costs, const StageGraph& graph,
                    Op message) {
  const Cargo cargo = *cargo_of(message.kind);
  const Wire& way = wire(graph, cargo, wire_of(graph, message));
  const StagePlace& sender = program.placement.stage[static_cast<std::size_t>(way.sender)];
  const StageCosts& stage = costs.stage[static_cast<std::size_t>(way.sender)];
  switch (cargo) {
    case Cargo::activation:
      return costs.edges[static_cast<std::size_t>(way.edge)].activation;
    case Cargo::gradient: {
      const Bytes whole = costs.edges[static_cast<std::size_t>(way.edge)].gradient;
      return Bytes{part_of(whole.count, sender, way.part)};
    }
    case Cargo::stash:
      return stash_read_on(sender, stage, way.to).both();
    case Cargo::weights:
      return stage.weights;
  }
  return Bytes{};
}

bool shares_resources(const TaskGraph& graph) {
  return std::any_of(graph.paths.begin(), graph.paths.end(),
                     [](const Path& path) { return !path.resources.empty(); });
}

}  // namespace stageline
