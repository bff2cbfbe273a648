// Executor: lowers a program, starts its workers and runs it.
#include "tools/executor/run/execute.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/processes/remote.hpp"
#include "tools/executor/run/held_record.hpp"
#include "tools/executor/run/imitation.hpp"
#include "tools/executor/run/optimizer_shards.hpp"
#include "tools/executor/run/runnable.hpp"
#include "tools/executor/run/stage_passes.hpp"
#include "tools/executor/run/wires.hpp"

namespace stageline::executor {
namespace {

using Clock = std::chrono::steady_clock;

bool makes_stash(Op op) { return op.kind == OpKind::forward || op.kind == OpKind::recompute; }

}  // namespace

// All that the workers share, and the workers: one for each compute or copy lane of this process.
struct Executor::Run {
  Run(Job given, const Costs& costs, const std::vector<Accelerator>& accelerators, Peers* peers)
      : job(std::move(given)),
        devices(accelerators),
        graph(lowered(job, costs)),
        exchange(job.program, job.graph),
        record(job, graph, exchange.losses),
        holds(job, graph, record.board, accelerators),
        wires(graph, record.board) {
    check_runnable(job, devices, peers);
    gathers = gather_needs(job, graph);
    devices.resize(job.program.devices.size());
    if (peers != nullptr) {
      exchange.in_one_process = false;
      remote = std::make_unique<Remote>(*peers, job, graph, gathers, exchange, record.board,
                                        record.start);
    }
    if (job.plan) {
      states = std::make_unique<StatesToShow>(job.plan->versions, job.plan->stops, job.plan->show);
      exchange.states = states.get();
    }
    if (job.imitated) {
      imitation = std::make_unique<Imitation>(job, costs, graph, exchange,
                                              [this](int device) { return is_here(device); });
    }
    passes.resize(devices.size());
    pool.on_failure([this](const std::exception_ptr& why) { tell_peers(why); });
    // Compute first: it makes the tensors that the copy lanes move.
    for (const bool compute : {true, false}) {
      for (std::uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
        if (graph.lanes[lane].kind == LaneKind::send) continue;  // links serve these
        if ((graph.lanes[lane].kind == LaneKind::compute) != compute) continue;
        if (!is_here(graph.lanes[lane].device)) continue;
        pool.add([this, lane] { set_up(lane); }, [this, lane] { walk(lane); });
      }
      pool.wait_until_idle();
    }
    pool.rethrow_failure();
  }
  ~Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Between processes: one device a process.
  bool is_here(int device) const { return !remote || device == remote->rank(); }

  void tell_peers(const std::exception_ptr& why) {
    if (!remote) return;
    try {
      std::rethrow_exception(why);
    } catch (const PeerFailure&) {  // they know
    } catch (const std::exception& error) {
      remote->fail(error.what());
    }
  }

  Time now() const { return std::chrono::duration_cast<Time>(Clock::now() - origin); }

  void stop_if_asked() const {
    if (pool.stopped() || (asked_to_stop != nullptr && *asked_to_stop)) throw Stopped();
  }

  // ---- a worker

  void set_up(std::uint32_t lane) {
    const auto d = as_size(graph.lanes[lane].device);
    enter(devices[d], graph.lanes[lane].kind);
    set_threads(1);
    if (imitation) return wait_exactly();
    if (graph.lanes[lane].kind != LaneKind::compute) return;
    passes[d] = std::make_unique<StagePasses>(job, graph.lanes[lane].device, devices[d].where,
                                              exchange, hooks_of(d));
  }

  MessageHooks hooks_of(std::size_t device) {
    MessageHooks hooks;
    holds.set_hooks(device, hooks);
    hooks.arrived = [this](int wire, std::uint32_t number) {
      const auto send = holds.send_of(Cargo::weights, wire, number);
      return send && record.board.is_there(*send, now());
    };
    hooks.pause = [this] {
      stop_if_asked();
      wires.poll(now());
      sched_yield();
    };
    return hooks;
  }

  // Copies to a host whose memory is the devices' are the links', as messages are. Where memory is
  // counted, they are made.
  bool wires_copy() const {
    return !counted && !imitation && !remote &&
           std::all_of(devices.begin(), devices.end(),
                       [](const Accelerator& one) { return one.where.is_cpu(); });
  }

  // All ops of a lane, in their order.
  void walk(std::uint32_t lane) {
    const auto d = as_size(graph.lanes[lane].device);
    std::unique_ptr<c10::DebugInfoGuard> counting;
    if (counted) counting = holds.listen(d);
    const c10::NoGradGuard plain;
    pool.await_release();
    if (graph.lanes[lane].kind != LaneKind::compute && wires_copy()) return;
    for (std::uint32_t at = graph.lane_begin[lane]; at != graph.lane_begin[lane + 1]; ++at) {
      const std::uint32_t task = graph.lane_task[at];
      stop_if_asked();
      wait_for(task);
      if (counted) passes[d]->drop_returned(true);
      record.start[task] = now();
      run_task(d, task);
      synchronize(devices[d].where);
      const Time end = now();
      if (graph.op[task].kind == OpKind::offload && !imitation) drop_offloaded(d, task, end);
      if (counted && graph.lanes[lane].kind == LaneKind::compute) {
        holds.ended(d, record.start[task], end);
      }
      record.board.publish(task, end);
      if (remote) {
        remote->done(task, end);
        remote->poll(end);
      }
    }
    if (graph.lanes[lane].kind != LaneKind::compute) return;
    for (const std::uint32_t update : gathers.at_end[d]) await(update);
    if (passes[d]) passes[d]->gather_shards();
  }

  void wait_for(std::uint32_t task) {
    for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
      await(graph.need[n]);
    }
    for (const std::uint32_t update : gathers.of_task[task]) await(update);
  }

  void await(std::uint32_t needed) {
    SpinWait spin;
    while (!record.board.is_there(needed, now())) {
      stop_if_asked();
      if (remote) {
        remote->check();
        remote->poll(now());
      } else {
        wires.poll(now());
      }
      // Imitated lanes may outnumber the cores, and must leave these to each other.
      imitation ? std::this_thread::sleep_for(std::chrono::microseconds(10)) : spin.wait();
    }
  }

  void run_task(std::size_t device, std::uint32_t task) {
    if (imitation) return imitate(task);
    const Op op = graph.op[task];
    if (lane_of(op.kind) == LaneKind::compute) {
      const bool pair = op.overlapped && !graph.partner.empty();
      // The halves of a pair run one after the other, the forward first: then they hold the bytes
      // of two that run at once, the forward's stash beside the backward's.
      std::uint32_t of_partner = 0;
      const bool partner_first = pair && !makes_stash(op) && makes_stash(graph.partner[task]);
      if (partner_first) compute(device, graph.partner[task], of_partner);
      compute(device, op, record.version[task]);
      if (pair && !partner_first) compute(device, graph.partner[task], of_partner);
      return;
    }
    const bool out = op.kind == OpKind::offload;
    if (out) {
      passes[device]->offload(op);
    } else {
      const auto dated = counted ? holds.date(device, record.start[task]) : nullptr;
      passes[device]->prefetch(op);
    }
    const Time end = record.start[task] + graph.duration[task];  // of the link, where it is slower
    while (now() < end) {
      std::this_thread::sleep_for(
          std::chrono::duration_cast<std::chrono::nanoseconds>(end - now()));
    }
    if (counted && !out) {
      holds.copied(device, record.start[task], passes[device]->stash_bytes(op));
    }
  }

  // The stash leaves at the end that is published. Freed at a moment of its own before that, it
  // would not stand beside one whose forward starts in between.
  void drop_offloaded(std::size_t device, std::uint32_t task, Time end) {
    const Op op = graph.op[task];
    if (!counted) return passes[device]->drop_offloaded(op);
    holds.copied(device, end, -passes[device]->stash_bytes(op));
    const auto dated = holds.date(device, end);
    passes[device]->drop_offloaded(op);
  }

  void imitate(std::uint32_t task) {
    const Op op = graph.op[task];
    const bool computes = lane_of(op.kind) == LaneKind::compute;
    if (computes && remote) imitation->take(task);
    if (!computes) imitation->copy(op);
    const Time end = record.start[task] + graph.duration[task];
    // Rounded up: no op is shorter than its prediction.
    wait_until(origin + std::chrono::ceil<Clock::duration>(end), [this] { stop_if_asked(); });
    if (computes) imitation->leave(task);
  }

  void compute(std::size_t device, Op op, std::uint32_t& version_read) {
    version_read = passes[device]->compute(op);
    if (counted) holds.computed(device, op, passes[device]->stash_change());
  }

  // ---- a run

  void run(const std::atomic<bool>* stop) {
    pool.wait_until_idle();
    if (remote) remote->meet();
    restart();
    asked_to_stop = stop;
    pool.begin_round();
    origin = remote ? remote->agree_on_start() : Clock::now();
    holds.begin(origin);
    while (Clock::now() < origin) std::this_thread::yield();
    pool.release();
    pool.wait_until_idle();
    pool.rethrow_failure();
    if (stop != nullptr && *stop) throw Stopped();
    // Messages that no op has waited for leave, too.
    while (!remote && !wires.idle()) wires.poll(now());
    while (remote && !remote->idle()) remote->poll(now());
    for (std::size_t d = 0; counted && d < passes.size(); ++d) {
      if (passes[d]) passes[d]->leave_rest();
    }
    for (std::size_t d = 0; counted && d < passes.size(); ++d) {
      if (!passes[d]) continue;
      passes[d]->drop_returned(true);  // messages taken after the device's last op
      record.held[d] = holds.held(d);
      record.held[d].peak += passes[d]->standing_bytes();
      record.held[d].optimizer = passes[d]->optimizer_bytes();
    }
    if (!remote) return;
    for (const std::string& text : remote->gather(record.text_of(remote->rank()))) {
      record.read(text);
    }
  }

  void restart() {
    record.board.clear();
    wires.restart(wires_copy());
    if (remote) remote->restart();
    exchange.mailbox.clear();
    std::fill(record.version.begin(), record.version.end(), 0);
    for (const auto& one : passes) {
      if (one) one->restart();
    }
    for (std::size_t s = 0; s < exchange.reductions.size(); ++s) {
      for (const auto& reduction : exchange.reductions[s]) {
        reduction->is_summed = false;
        reduction->of_replica.assign(job.program.placement.stage[s].replicas.size(), {});
      }
      for (const auto& shards : exchange.shards[s]) {
        shards->of_replica.assign(shards->of_replica.size(), {});
        shards->times_read.assign(shards->times_read.size(), 0);
      }
    }
  }

  Job job;
  std::vector<Accelerator> devices;
  TaskGraph graph;
  GatherNeeds gathers;  // of a sharded optimizer
  Exchange exchange;
  RunRecord record;
  std::unique_ptr<StatesToShow> states;  // of a training
  HeldRecord holds;
  Wires wires;
  std::vector<std::unique_ptr<StagePasses>> passes;  // by device; made by its compute worker
  std::unique_ptr<Imitation> imitation;              // null: passes compute
  bool counted = false;
  std::unique_ptr<Remote> remote;  // null: all devices are this process's
  Clock::time_point origin;        // when the run began
  const std::atomic<bool>* asked_to_stop = nullptr;
  WorkerPool pool;  // last: its threads use all of the above
};

Executor::Executor(Job job, const Costs& costs, const std::vector<Accelerator>& devices,
                   Peers* peers)
    : run_(std::make_unique<Run>(std::move(job), costs, devices, peers)) {}
Executor::~Executor() = default;

const TaskGraph& Executor::graph() const { return run_->graph; }

Execution Executor::run(const std::atomic<bool>* stop) {
  run_->job.separate = false;
  run_->counted = false;
  run_->run(stop);
  return last_run();
}

Execution Executor::last_run() const {
  return run_->record.execution(run_->remote != nullptr, run_->wires_copy());
}

std::vector<HeldBytes> Executor::run_counted(const std::atomic<bool>* stop) {
  run_->job.separate = !run_->imitation;
  run_->counted = !run_->imitation;
  // Twice: the allocator reports the freeing only of tensors whose allocation it has reported.
  for (int i = 0; i < 2; ++i) {
    run_->holds.restart();
    run_->record.held.assign(run_->devices.size(), {});
    run_->run(stop);
  }
  return run_->record.held;
}

const LayerWeights& Executor::weights(std::size_t layer, int replica) const {
  const int stage = run_->job.partition.stage_of[layer];
  const StagePlace& place = nth(run_->job.program.placement.stage, stage);
  return nth(run_->passes, place.device(Role::weight_grad, replica))->model().weights[layer];
}

}  // namespace stageline::executor
