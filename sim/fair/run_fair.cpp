// run_fair: tasks of the lanes as in run(), but transfers are flows at max-min fair rates, and
// compute and transfers slow one another. What nothing can slow is done ahead of time, as its lane
// is walked; every other lane has one event in a heap: a start, the end of a setup, or an end that
// moves when the rate changes.
//
//     moment t │ ends, setups, starts of t │ rates │ ends that moved │ starts ahead of a need
//
// The starts ahead of a need (Path::head_start) follow from ends as they are planned at the moment,
// so they come last, and may give the moment another round.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/base/index.hpp"
#include "sim/base/pages.hpp"
#include "sim/engine.hpp"
#include "sim/fair/event_queue.hpp"
#include "sim/fair/max_min.hpp"
#include "sim/fair/narrowest.hpp"
#include "sim/fair/rated_work.hpp"

namespace stageline {
namespace {

constexpr Time not_yet{-1};
constexpr std::uint32_t no_waiter = 0xffffffff;

// A path, as the engine needs it.
struct FairPath {
  std::vector<ResourceLoad> loads;
  double bound = MaxMin::unbounded;  // bytes a picosecond
  double slows = 0;                  // compute on its devices: γ of its class
  double drag = 0;                   // Path::tier's transfer_slowdown, where it has devices
};

// How many flows of a device move bytes, by tier.
struct Moving {
  std::array<std::uint32_t, tiers> collectives{};
  std::array<std::uint32_t, tiers> messages{};
};

double per_picosecond(Bandwidth bandwidth) {
  return bandwidth.is_unlimited() ? MaxMin::unbounded
                                  : static_cast<double>(bandwidth.bytes_per_second) * 1e-12;
}

std::vector<double> capacities(const TaskGraph& graph) {
  assert(graph.capacity.size() == graph.resources.size());
  std::vector<double> capacity;
  for (const Bandwidth of_resource : graph.capacity) {
    capacity.push_back(per_picosecond(of_resource));
  }
  return capacity;
}

class FairRunner {
 public:
  explicit FairRunner(const TaskGraph& graph)
      : graph_(graph),
        solver_(capacities(graph)),
        queue_(graph.lanes.size()),
        head_(graph.lane_begin.begin(), graph.lane_begin.end() - 1),
        next_waiter_(graph.lanes.size(), no_waiter),
        lane_free_(graph.lanes.size()),
        at_(graph.lanes.size()),
        took_(graph.duration),
        devices_(graph.devices.size()),
        any_ahead_(has_head_starts(graph)) {
    reserve_pages(waiter_, graph.tasks());
    waiter_.assign(graph.tasks(), no_waiter);
    reserve_pages(times_.available, graph.tasks());
    times_.available.assign(graph.tasks(), not_yet);
    read_paths();
    find_compute_lanes();
    find_awaited_ahead();
  }

  TaskTimes run() {
    for (std::uint32_t lane = static_cast<std::uint32_t>(graph_.lanes.size()); lane-- > 0;) {
      ready_lanes_.push_back(lane);
    }
    while (true) {
      do {
        walk_all();
        while (!queue_.empty() && queue_.first() == now_) {
          act(queue_.pop());
          walk_all();
        }
        settle();
        start_ahead();
      } while (!ready_lanes_.empty() || !unsettled_devices_.empty() || solver_.is_changed() ||
               (!queue_.empty() && queue_.first() == now_));
      if (queue_.empty()) return std::move(times_);
      now_ = queue_.first();
    }
  }

  std::vector<Time> take_durations() { return std::move(took_); }

 private:
  enum class Phase : std::uint8_t {
    idle,     // waits for needs
    asks,     // starts at its event
    gathers,  // may start ahead of its needs; plans that from its event on
    setup,    // of a flow
    moves,    // bytes
    computes,
  };
  // What a lane is at.
  struct LaneState {
    Phase phase = Phase::idle;
    bool listed = false;  // in ahead_
    MaxMin::Flow flow = 0;
    Time start{};
    Time end{};  // as planned
    RatedWork work;
  };
  struct DeviceState {
    Moving flows;                 // that slow compute
    std::uint32_t computing = 0;  // of `lanes`
    bool unsettled = false;
    std::vector<std::uint32_t> lanes;   // of compute, if it meets flows
    std::vector<std::uint32_t> moving;  // lanes with flows that compute slows
  };

  const Path& path(std::uint32_t task) const { return graph_.paths[graph_.path_of[task]]; }
  std::uint32_t task_at(std::uint32_t lane) const { return graph_.lane_task[head_[lane]]; }

  void read_paths() {
    const std::vector<bool> narrowest = narrowest_resources(graph_);
    for (const Path& given : graph_.paths) {
      FairPath& fair = paths_.emplace_back();
      for (std::size_t i = 0; i < given.resources.size(); ++i) {
        if (!narrowest[given.resources[i]]) continue;
        fair.loads.push_back({given.resources[i], given.load.empty() ? 1 : given.load[i]});
      }
      fair.bound = per_picosecond(given.bandwidth);
      if (given.devices.empty()) continue;
      fair.slows =
          nth(given.is_message ? graph_.message_slowdown : graph_.overlap_slowdown, given.tier);
      fair.drag = nth(graph_.transfer_slowdown, given.tier);
    }
  }

  void find_compute_lanes() {
    std::vector<bool> meets(graph_.devices.size());
    for (std::size_t p = 0; p < paths_.size(); ++p) {
      if (paths_[p].slows == 0 && paths_[p].drag == 0) continue;
      for (const std::uint16_t device : graph_.paths[p].devices) meets[device] = true;
    }
    meets_flows_.resize(graph_.lanes.size());
    for (std::uint32_t lane = 0; lane < graph_.lanes.size(); ++lane) {
      const Lane& is = graph_.lanes[lane];
      meets_flows_[lane] = is.kind == LaneKind::compute && meets[as_size(is.device)];
      if (meets_flows_[lane]) nth(devices_, is.device).lanes.push_back(lane);
    }
  }

  void find_awaited_ahead() {
    if (!any_ahead_) return;
    awaited_ahead_.resize(graph_.tasks());
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      if (path(task).head_start == Time{}) continue;
      for (std::uint32_t i = graph_.need_begin[task]; i != graph_.need_begin[task + 1]; ++i) {
        awaited_ahead_[graph_.need[i]] = true;
      }
    }
  }

  bool is_flow(std::uint32_t task) const {
    const FairPath& fair = paths_[graph_.path_of[task]];
    return graph_.bytes[task] > Bytes{} && (!fair.loads.empty() || fair.slows > 0 || fair.drag > 0);
  }

  void walk_all() {
    while (!ready_lanes_.empty()) {
      const std::uint32_t lane = ready_lanes_.back();
      ready_lanes_.pop_back();
      walk(lane);
    }
  }

  // Does what nothing can slow, until a task must wait: for a need, or for its time to start.
  void walk(std::uint32_t lane) {
    while (at_[lane].phase == Phase::idle && head_[lane] != graph_.lane_begin[lane + 1]) {
      const std::uint32_t task = task_at(lane);
      if (any_ahead_ && path(task).head_start > Time{}) {
        gather(lane);
        return;
      }
      Time ready = lane_free_[lane];
      for (std::uint32_t i = graph_.need_begin[task]; i != graph_.need_begin[task + 1]; ++i) {
        const std::uint32_t needed = graph_.need[i];
        const Time available = times_.available[needed];
        if (available == not_yet) {
          next_waiter_[lane] = waiter_[needed];
          waiter_[needed] = lane;
          return;
        }
        ready = std::max(ready, available);
      }
      if (!meets_flows_[lane] && !is_flow(task)) {
        finish(lane, ready, ready + graph_.duration[task]);
      } else if (ready > now_) {
        at_[lane].phase = Phase::asks;
        queue_.set(lane, ready);
      } else {
        start(lane);
      }
    }
  }

  void act(std::uint32_t lane) {
    switch (at_[lane].phase) {
      case Phase::idle:  // it started before its event, ahead of a need, and took no time
        return;
      case Phase::asks:
        start(lane);
        break;
      case Phase::gathers:
        gather(lane);
        break;
      case Phase::setup:
        move_bytes(lane);
        break;
      case Phase::moves:
      case Phase::computes:
        end(lane);
        break;
    }
    ready_lanes_.push_back(lane);
  }

  void start(std::uint32_t lane) {
    const std::uint32_t task = task_at(lane);
    LaneState& state = at_[lane];
    state.start = now_;
    if (state.listed) leave_ahead(lane);
    if (is_flow(task)) {
      const Time setup = path(task).setup;
      state.end = now_ + std::max(setup, graph_.duration[task]);  // if nobody shares
      state.phase = Phase::setup;
      if (setup > Time{}) {
        queue_.set(lane, now_ + setup);
      } else {
        move_bytes(lane);
      }
    } else if (meets_flows_[lane] && graph_.duration[task] > Time{}) {
      state.phase = Phase::computes;
      state.work = {static_cast<double>(graph_.duration[task].count()), 0, now_};
      DeviceState& device = nth(devices_, graph_.lanes[lane].device);
      if (++device.computing == 1) unsettle(device);
      set_pace(lane);
    } else {
      finish(lane, now_, now_ + graph_.duration[task]);
    }
    if (any_ahead_ && awaited_ahead_[task]) plans_moved_ = true;
  }

  void move_bytes(std::uint32_t lane) {
    const std::uint32_t task = task_at(lane);
    const FairPath& fair = paths_[graph_.path_of[task]];
    LaneState& state = at_[lane];
    state.phase = Phase::moves;
    if (fair.loads.empty() && fair.drag == 0) {
      queue_.set(lane, state.end);
    } else if (fair.loads.empty()) {
      state.work = {static_cast<double>((state.end - now_).count()), 0, now_};
    } else {
      state.work = {static_cast<double>(graph_.bytes[task].count), 0, now_};
      state.flow = solver_.add(task, fair.loads, fair.bound);
      if (state.flow >= lane_of_flow_.size()) lane_of_flow_.resize(state.flow + std::size_t{1});
      lane_of_flow_[state.flow] = lane;
    }
    if (fair.slows > 0) slow(task, +1);
    if (fair.drag == 0) return;
    for (const std::uint16_t device : path(task).devices) devices_[device].moving.push_back(lane);
    if (fair.loads.empty()) undriven_.push_back(lane);
  }

  void unsettle(DeviceState& device) {
    if (device.unsettled) return;
    device.unsettled = true;
    unsettled_devices_.push_back(static_cast<std::uint16_t>(&device - devices_.data()));
  }

  // A flow of the task begins to slow its devices, or ceases to.
  void slow(std::uint32_t task, int change) {
    const Path& of_task = path(task);
    for (const std::uint16_t device : of_task.devices) {
      DeviceState& state = devices_[device];
      std::uint32_t& flows =
          nth(of_task.is_message ? state.flows.messages : state.flows.collectives, of_task.tier);
      flows += static_cast<std::uint32_t>(change);
      const bool turned = flows == (change > 0 ? 1U : 0U);
      if (turned && !state.lanes.empty()) unsettle(state);
    }
  }

  void end(std::uint32_t lane) {
    const std::uint32_t task = task_at(lane);
    const LaneState& state = at_[lane];
    if (state.phase == Phase::moves) {
      const FairPath& fair = paths_[graph_.path_of[task]];
      if (!fair.loads.empty()) {
        assert(now_ == state.start + graph_.duration[task] || all_moved(state.work));
        solver_.remove(state.flow);
      }
      if (fair.slows > 0) slow(task, -1);
      for (std::size_t i = 0; fair.drag > 0 && i < path(task).devices.size(); ++i) {
        std::vector<std::uint32_t>& moving = devices_[path(task).devices[i]].moving;
        moving.erase(std::find(moving.begin(), moving.end(), lane));
      }
    } else if (DeviceState& device = nth(devices_, graph_.lanes[lane].device);
               --device.computing == 0) {
      unsettle(device);
    }
    finish(lane, state.start, now_);
  }

  // To a byte, or to what moves in a picosecond. A collective's duration is a sum of rounded parts:
  // one that had its bandwidth all the time ends by that.
  bool all_moved(const RatedWork& work) const {
    const auto time = static_cast<double>((now_ - work.since).count());
    return std::abs(work.left - work.rate * time) <= 1 + work.rate;
  }

  void finish(std::uint32_t lane, Time start, Time end) {
    const std::uint32_t task = task_at(lane);
    at_[lane].phase = Phase::idle;
    took_[task] = end - start;
    lane_free_[lane] = end;
    times_.available[task] = end + path(task).lag;
    ++head_[lane];
    for (std::uint32_t waiting = waiter_[task]; waiting != no_waiter;
         waiting = next_waiter_[waiting]) {
      ready_lanes_.push_back(waiting);
    }
    if (any_ahead_ && awaited_ahead_[task]) plans_moved_ = true;
  }

  // New rates, and the ends that follow from them.
  void settle() {
    if (solver_.is_changed()) {
      for (const MaxMin::Flow flow : solver_.update()) {
        const std::uint32_t lane = lane_of_flow_[flow];
        set_rate(lane, rate_of(lane));
      }
    }
    for (const std::uint32_t lane : undriven_) set_rate(lane, rate_of(lane));
    undriven_.clear();
    for (const std::uint16_t device : unsettled_devices_) {
      devices_[device].unsettled = false;
      for (const std::uint32_t lane : devices_[device].lanes) {
        if (at_[lane].phase == Phase::computes) set_pace(lane);
      }
      for (const std::uint32_t lane : devices_[device].moving) {
        const double rate = rate_of(lane);
        if (std::abs(rate - at_[lane].work.rate) > 1e-12 * rate) set_rate(lane, rate);
      }
    }
    unsettled_devices_.clear();
  }

  // Bytes a picosecond that a flow moves, or picoseconds of one that shares nothing: its share of
  // the links, which stays its own, or less beside compute.
  double rate_of(std::uint32_t lane) const {
    const std::uint32_t task = task_at(lane);
    const FairPath& fair = paths_[graph_.path_of[task]];
    const double share = fair.loads.empty() ? 1 : solver_.rate(at_[lane].flow);
    return is_dragged(task) ? share / (1 + fair.drag) : share;
  }

  bool is_dragged(std::uint32_t task) const {
    if (paths_[graph_.path_of[task]].drag == 0) return false;
    const std::vector<std::uint16_t>& devices = path(task).devices;
    return std::any_of(devices.begin(), devices.end(),
                       [this](std::uint16_t device) { return devices_[device].computing > 0; });
  }

  // A flow that has its own bandwidth from the first byte takes as long as alone, to the
  // picosecond.
  void set_rate(std::uint32_t lane, double rate) {
    LaneState& state = at_[lane];
    const std::uint32_t task = task_at(lane);
    const bool shares = !paths_[graph_.path_of[task]].loads.empty();
    const bool alone =
        state.work.rate == 0 && !is_dragged(task) && (!shares || solver_.is_at_bound(state.flow));
    const Time end = state.work.go_on(rate, now_);
    plan(lane, alone ? std::max(now_, state.start + graph_.duration[task]) : end);
  }

  void set_pace(std::uint32_t lane) {
    LaneState& state = at_[lane];
    const double slowdown = slowdown_of(nth(devices_, graph_.lanes[lane].device));
    const double rate = 1 / slowdown;
    if (std::abs(rate - state.work.rate) <= 1e-12) return;
    const bool alone = state.work.rate == 0 && slowdown == 1;
    const Time end = state.work.go_on(rate, now_);
    plan(lane, alone ? now_ + graph_.duration[task_at(lane)] : end);
  }

  double slowdown_of(const DeviceState& device) const {
    double slowdown = 1;
    for (std::size_t tier = 0; tier < tiers; ++tier) {
      const double collectives =
          device.flows.collectives[tier] > 0 ? graph_.overlap_slowdown[tier] : 0;
      const double messages = device.flows.messages[tier] > 0 ? graph_.message_slowdown[tier] : 0;
      slowdown += std::max(collectives, messages);
    }
    return slowdown;
  }

  void plan(std::uint32_t lane, Time end) {
    at_[lane].end = end;
    queue_.set(lane, end);
    if (any_ahead_ && awaited_ahead_[task_at(lane)]) plans_moved_ = true;
  }

  // The next task of the lane may start ahead of its needs: from now on its start is planned
  // whenever a plan moves.
  void gather(std::uint32_t lane) {
    LaneState& state = at_[lane];
    state.phase = Phase::gathers;
    if (lane_free_[lane] > now_) {
      queue_.set(lane, lane_free_[lane]);
      return;
    }
    if (!state.listed) ahead_.push_back(lane);
    state.listed = true;
    plans_moved_ = true;
  }

  void start_ahead() {
    if (!plans_moved_) return;
    plans_moved_ = false;
    starting_.clear();
    for (const std::uint32_t lane : ahead_) plan_ahead(lane);
    for (const std::uint32_t lane : starting_) {
      start(lane);
      ready_lanes_.push_back(lane);
    }
  }

  // From the ends as they were planned when the moment's rates were found.
  void plan_ahead(std::uint32_t lane) {
    const std::uint32_t task = task_at(lane);
    const Time head_start = path(task).head_start;
    Time ready = now_;
    Time last_start{};
    for (std::uint32_t i = graph_.need_begin[task]; i != graph_.need_begin[task + 1]; ++i) {
      const std::uint32_t needed = graph_.need[i];
      const Time lag = path(needed).lag;
      Time available = times_.available[needed];
      Time started = available - lag - took_[needed];
      if (available == not_yet) {
        const std::uint32_t of_need = graph_.lane[needed];
        const LaneState& state = at_[of_need];
        if (state.phase < Phase::setup || task_at(of_need) != needed) return;  // not started
        available = state.end + lag;
        started = state.start;
      }
      last_start = std::max(last_start, started);
      ready = std::max(ready, ready_ahead(available, started, head_start));
    }
    LaneState& state = at_[lane];
    if (last_start > now_) {
      state.phase = Phase::gathers;
      queue_.set(lane, last_start);
    } else if (ready > now_) {
      state.phase = Phase::asks;
      queue_.set(lane, ready);
    } else {
      starting_.push_back(lane);
    }
  }

  void leave_ahead(std::uint32_t lane) {
    at_[lane].listed = false;
    ahead_.erase(std::find(ahead_.begin(), ahead_.end(), lane));
  }

  const TaskGraph& graph_;
  std::vector<FairPath> paths_;
  MaxMin solver_;
  EventQueue queue_;
  Time now_{};
  std::vector<std::uint32_t> head_;         // by lane, into lane_task
  std::vector<std::uint32_t> next_waiter_;  // by lane: the next lane that waits for the same task
  std::vector<Time> lane_free_;             // by lane
  std::vector<LaneState> at_;               // by lane
  std::vector<bool> meets_flows_;           // by lane: compute that flows slow, or that slows them
  std::vector<std::uint32_t> waiter_;       // by task: the first lane that waits for it
  std::vector<bool> awaited_ahead_;         // by task: a task with a head start needs it
  std::vector<Time> took_;                  // by task
  std::vector<std::uint32_t> lane_of_flow_;
  std::vector<DeviceState> devices_;
  std::vector<std::uint16_t> unsettled_devices_;
  std::vector<std::uint32_t> ready_lanes_;
  std::vector<std::uint32_t> undriven_;  // lanes with flows on no link, which have no rate yet
  std::vector<std::uint32_t> ahead_;     // lanes whose next task may start ahead of its needs
  std::vector<std::uint32_t> starting_;  // of these
  bool any_ahead_ = false;
  bool plans_moved_ = false;
  TaskTimes times_;
};

}  // namespace

TaskTimes run_fair(const TaskGraph& graph, std::vector<Time>& took) {
  FairRunner runner(graph);
  TaskTimes times = runner.run();
  took = runner.take_durations();
  return times;
}

TaskTimes run_fair(TaskGraph& graph) {
  std::vector<Time> took;
  TaskTimes times = run_fair(graph, took);
  graph.duration = std::move(took);
  return times;
}

}  // namespace stageline
