#include "tools/executor/run/execute.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/processes/peers.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/processes/remote.hpp"
#include "tools/executor/run/wires.hpp"
#include "tools/executor/tensors/memory_log.hpp"

namespace stageline {
namespace {

using Now = std::chrono::steady_clock;

// Looks again at once for a while, then lets others of this core have a turn: a copy engine, say.
// (No pause instruction: a hypervisor takes a loop of them for idleness and takes the core away.)
class Patience {
 public:
  void wait() {
    if (++looked_ % 64 == 0) sched_yield();
  }

 private:
  int looked_ = 0;
};

}  // namespace

namespace {

// A SEND here goes beside the computing, and nobody waits for the other end.
// What is learned does not wait for links that are imitated.
TaskGraph with_free_links(TaskGraph graph) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    if (lane_of(graph.op[task].kind) == LaneKind::compute) continue;
    graph.duration[task] = Time{};
    graph.path_of[task] = 0;
  }
  return graph;
}

const Program& runnable(const Program& program) {
  if (program.messages == Messages::async) return program;
  throw UsageError(fmt::format(
      "messages: {} can be simulated, but only messages: async can be executed; leave the line out",
      name(program.messages)));
}

}  // namespace

// What all workers share, and the workers.
struct Executor::Crew {
  // A thread and the lane it walks. The compute worker of a device also makes its tensors.
  struct Worker {
    std::uint32_t lane = 0;
    int device = 0;
    std::thread thread;
  };

  Crew(Job given, const Costs& costs, const std::vector<Accelerator>& accelerators, Peers* peers)
      : job(std::move(given)),
        devices(accelerators),
        graph(job.course ? with_free_links(compile(runnable(job.program), costs))
                         : compile(runnable(job.program), costs)),
        exchange(job.program, job.graph),
        board(graph.tasks()),
        wires(graph, board),
        start(graph.tasks()),
        version(graph.tasks()) {
    if (job.program.sequence_chunks > 1) {
      throw UsageError(
          "sequence_chunks: the models that are run here do not cut sequences (attention would "
          "have "
          "to look back over chunks); such a program can only be simulated");
    }
    if (peers != nullptr) join(*peers);
    if (job.course) {
      if (peers != nullptr) throw UsageError("training runs in one process, not in several");
      states =
          std::make_unique<StatesToShow>(job.course->reads, job.course->stops, job.course->show);
      exchange.states = states.get();
    }
    if (devices.size() < job.program.devices.size()) {
      throw UsageError(fmt::format("the program runs on {} devices, but there are {}",
                                   job.program.devices.size(), devices.size()));
    }
    devices.resize(job.program.devices.size());
    const auto on_cpu = std::count_if(devices.begin(), devices.end(),
                                      [](const Accelerator& one) { return one.where.is_cpu(); });
    if (on_cpu > 1 && peers == nullptr) {
      if (const std::string why = unfit_for_lanes(loaded_blas()); !why.empty()) {
        throw UsageError(why);
      }
    }
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      const Op op = graph.op[task];
      if (!is_send(op.kind)) continue;
      message[{*cargo_of(op.kind), wire_of(job.graph, op), op.microbatch}] = task;
    }
    tensors.resize(devices.size());
    for (const Accelerator& device : devices) logs.emplace_back(device.where);
    held.resize(devices.size());
    for (std::uint32_t lane = 0; lane < graph.lanes.size(); ++lane) {
      if (graph.lanes[lane].kind == LaneKind::send) continue;  // the wires'
      if (!is_here(graph.lanes[lane].device)) continue;
      workers.push_back({lane, graph.lanes[lane].device, {}});
    }
    // Compute first: it makes the tensors that the others copy.
    for (const bool compute : {true, false}) {
      for (Worker& worker : workers) {
        if ((graph.lanes[worker.lane].kind == LaneKind::compute) != compute) continue;
        worker.thread = std::thread([this, &worker] { live(worker); });
      }
      wait_until_idle();
    }
    if (failure) {
      end();
      std::rethrow_exception(failure);
    }
  }

  // One device a process.
  void join(Peers& peers) {
    if (peers.size() != static_cast<int>(job.program.devices.size())) {
      throw UsageError(fmt::format("the program runs on {} devices, but there are {} processes",
                                   job.program.devices.size(), peers.size()));
    }
    if (!job.program.weights_transfer) {
      throw UsageError("weights_transfer: off is for one process; between several, weights travel");
    }
    remote = std::make_unique<Remote>(peers, job, graph, exchange, board, start);
  }
  bool is_here(int device) const { return !remote || device == remote->rank(); }

  ~Crew() { end(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void end() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    for (Worker& worker : workers) {
      if (worker.thread.joinable()) worker.thread.join();
    }
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex);
    const auto started = static_cast<int>(std::count_if(
        workers.begin(), workers.end(), [](const Worker& w) { return w.thread.joinable(); }));
    changed.wait(lock, [&] { return idle == started; });
  }

  // A worker's life: set up, then a walk whenever the round goes on.
  void live(Worker& worker) {
    bool ready = false;
    try {
      set_up(worker);
      ready = true;
    } catch (...) {
      fail(std::current_exception());
    }
    std::uint64_t seen = 0;
    while (true) {
      {
        std::unique_lock lock(mutex);
        ++idle;
        changed.notify_all();
        changed.wait(lock, [&] { return ending || round != seen; });
        if (ending) return;
        seen = round;
        --idle;
      }
      if (!ready) continue;
      try {
        walk(worker);
      } catch (const Stopped&) {
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  void fail(std::exception_ptr why) {
    if (remote) tell(why);
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::move(why);
    stopped = true;
  }

  void tell(const std::exception_ptr& why) {
    try {
      std::rethrow_exception(why);
    } catch (const PeerFailure&) {  // they know
    } catch (const std::exception& error) {
      remote->fail(error.what());
    }
  }

  void set_up(const Worker& worker) {
    const auto d = as_size(worker.device);
    const bool compute = graph.lanes[worker.lane].kind == LaneKind::compute;
    enter(devices[d], graph.lanes[worker.lane].kind);
    set_threads(1);
    if (!compute) return;
    tensors[d] = std::make_unique<StageTensors>(
        job, worker.device, devices[d].where, exchange,
        StageTensors::Mail{
            [this](int wire, std::uint32_t number) {
              const auto found = message.find({Cargo::weights, wire, number});
              return found != message.end() && board.is_there(found->second, now());
            },
            // A receiver has room for a message from when it begins to arrive.
            [this, d](Cargo cargo, int wire, std::uint32_t number, std::int64_t bytes) {
              const auto found = message.find({cargo, wire, number});
              if (found == message.end()) return Now::now();
              const std::uint32_t task = found->second;
              const auto moment = [&](Time at) {
                return origin + std::chrono::duration_cast<Now::duration>(at);
              };
              logs[d].note(moment(board.at(task) - graph.duration[task]), bytes);
              logs[d].note(Now::now(), -bytes);
              return moment(board.at(task) - graph.paths[graph.path_of[task]].lag);
            },
            [this, d](Now::time_point through, std::int64_t bytes) {
              logs[d].note(through, -bytes);
              logs[d].note(Now::now(), bytes);
            },
            [this] {
              stop_if_asked();
              wires.poll(now());
              sched_yield();
            }});
  }

  Time now() const { return std::chrono::duration_cast<Time>(Now::now() - origin); }

  void stop_if_asked() const {
    if (stopped || (asked_to_stop != nullptr && *asked_to_stop)) throw Stopped();
  }

  void wait_for(std::uint32_t task) {
    Patience patience;
    for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
      while (!board.is_there(graph.need[n], now())) {
        stop_if_asked();
        if (remote) {
          remote->check();
          remote->poll(now());
        } else {
          wires.poll(now());
        }
        patience.wait();
      }
    }
  }

  void walk(const Worker& worker) {
    const auto d = as_size(worker.device);
    std::unique_ptr<c10::DebugInfoGuard> counting;
    if (counted) counting = logs[d].listen();
    const c10::NoGradGuard plain;
    // All begin together.
    ++arrived;
    Patience patience;
    while (!begun.load(std::memory_order_acquire)) patience.wait();
    const std::uint32_t first = graph.lane_begin[worker.lane];
    const std::uint32_t last = graph.lane_begin[worker.lane + 1];
    for (std::uint32_t at = first; at != last; ++at) {
      const std::uint32_t task = graph.lane_task[at];
      wait_for(task);
      if (counted) tensors[d]->drop_returned(true);
      start[task] = now();
      run_task(*tensors[d], task);
      synchronize(devices[d].where);
      const Time end = now();
      board.publish(task, end);
      if (remote) {
        remote->done(task, end);
        remote->poll(end);
      }
    }
  }

  static bool makes_stash(Op op) {
    return op.kind == OpKind::forward || op.kind == OpKind::recompute;
  }

  void compute(std::size_t device, Op op, std::uint32_t& version_read) {
    version_read = tensors[device]->compute(op);
    if (!counted) return;
    held[device].stash = std::max(held[device].stash, tensors[device]->stash_bytes());
  }

  void run_task(StageTensors& on, std::uint32_t task) {
    const Op op = graph.op[task];
    if (lane_of(op.kind) == LaneKind::compute) {
      const auto d = as_size(graph.lanes[graph.lane[task]].device);
      const bool pair = op.overlapped && !graph.partner.empty();
      // The halves of a pair run one after the other, the forward first: then they hold what two
      // that run at once would, the forward's stash beside the backward's.
      std::uint32_t of_partner = 0;
      const bool partner_first = pair && !makes_stash(op) && makes_stash(graph.partner[task]);
      if (partner_first) compute(d, graph.partner[task], of_partner);
      compute(d, op, version[task]);
      if (pair && !partner_first) compute(d, graph.partner[task], of_partner);
      return;
    }
    op.kind == OpKind::offload ? on.offload(op) : on.prefetch(op);
    const Time end = start[task] + graph.duration[task];  // of the link, where that is slower
    while (now() < end) {
      std::this_thread::sleep_for(
          std::chrono::duration_cast<std::chrono::nanoseconds>(end - now()));
    }
  }

  void play(const std::atomic<bool>* stop) {
    wait_until_idle();
    if (remote) remote->meet();
    board.clear();
    wires.restart();
    if (remote) remote->restart();
    exchange.parcels.clear();
    std::fill(version.begin(), version.end(), 0);
    for (const auto& one : tensors) {
      if (one) one->restart();
    }
    for (const auto& of_stage : exchange.reductions) {
      for (std::size_t k = 0; k < of_stage.size(); ++k) of_stage[k]->read = 0;
    }
    for (std::size_t s = 0; s < exchange.reductions.size(); ++s) {
      for (const auto& reduction : exchange.reductions[s]) {
        reduction->of_replica.assign(job.program.placement.stage[s].replicas.size(), {});
      }
    }
    stopped = false;
    asked_to_stop = stop;
    arrived = 0;
    begun = false;
    {
      const std::lock_guard lock(mutex);
      ++round;
    }
    changed.notify_all();
    while (arrived != static_cast<int>(workers.size())) std::this_thread::yield();
    origin = remote ? remote->agree_on_start() : Now::now();
    while (Now::now() < origin) std::this_thread::yield();
    begun.store(true, std::memory_order_release);
    wait_until_idle();
    if (failure) std::rethrow_exception(failure);
    if (stop != nullptr && *stop) throw Stopped();
    // What nobody waited for leaves, too.
    while (!remote && !wires.idle()) wires.poll(now());
    while (remote && !remote->idle()) remote->poll(now());
    for (std::size_t d = 0; counted && d < held.size(); ++d) {
      if (tensors[d]) held[d].peak = tensors[d]->standing_bytes() + logs[d].peak();
    }
    if (remote) collect();
  }

  // By task, when it began and was there, and the losses: from all processes, on rank 0.
  void collect() {
    std::string mine;
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      const Lane& lane = graph.lanes[graph.lane[task]];
      const bool message = is_send(graph.op[task].kind);
      const int teller = message ? receiver_of(task) : lane.device;
      if (teller != remote->rank()) continue;
      mine += fmt::format("{} {} {} {}\n", task, start[task].count(), board.at(task).count(),
                          version[task]);
    }
    mine += "losses\n";
    for (std::size_t m = 0; m < exchange.losses.size(); ++m) {
      const at::Tensor& loss = exchange.losses[m];
      if (loss.defined()) mine += fmt::format("{} {:.17g}\n", m, loss.item<double>());
    }
    const auto d = as_size(remote->rank());
    mine += fmt::format("held\n{} {} {}\n", d, held[d].peak, held[d].stash);
    for (const std::string& text : remote->gather(mine)) read(text);
  }

  int receiver_of(std::uint32_t task) const {
    const Op op = graph.op[task];
    return ends_of(job.program.placement,
                   wire(job.graph, *cargo_of(op.kind), wire_of(job.graph, op)), op.microbatch)
        .to;
  }

  void read(const std::string& text) {
    std::istringstream lines(text);
    std::string word;
    while (lines >> word && word != "losses") {
      const auto task = static_cast<std::uint32_t>(std::stoul(word));
      std::int64_t from = 0;
      std::int64_t there = 0;
      lines >> from >> there >> version[task];
      start[task] = Time{from};
      board.publish(task, Time{there});
    }
    while (lines >> word && word != "held") {
      double loss = 0;
      lines >> loss;
      exchange.losses[std::stoul(word)] = at::scalar_tensor(loss, at::kDouble);
    }
    std::size_t d = 0;
    lines >> d;
    lines >> held[d].peak >> held[d].stash;
  }

  Job job;
  std::vector<Accelerator> devices;
  TaskGraph graph;
  Exchange exchange;
  std::unique_ptr<StatesToShow> states;  // of a training
  Board board;
  Wires wires;
  std::vector<Time> start;                                                 // by task
  std::vector<std::uint32_t> version;                                      //
  std::map<std::tuple<Cargo, int, std::uint32_t>, std::uint32_t> message;  // → task
  std::vector<std::unique_ptr<StageTensors>> tensors;                      // by device
  std::vector<MemoryLog> logs;                                             //
  std::vector<HeldBytes> held;                                             //
  bool counted = false;
  std::unique_ptr<Remote> remote;  // nothing: all devices are this process's
  std::vector<Worker> workers;

  Now::time_point origin;
  std::atomic<int> arrived{0};
  std::atomic<bool> begun{false};
  std::atomic<bool> stopped{false};
  const std::atomic<bool>* asked_to_stop = nullptr;

  std::mutex mutex;  // what follows
  std::condition_variable changed;
  std::uint64_t round = 0;
  int idle = 0;
  bool ending = false;
  std::exception_ptr failure;
};

Executor::Executor(Job job, const Costs& costs, const std::vector<Accelerator>& devices,
                   Peers* peers)
    : crew_(std::make_unique<Crew>(std::move(job), costs, devices, peers)) {}
Executor::~Executor() = default;

const TaskGraph& Executor::graph() const { return crew_->graph; }

Execution Executor::run(const std::atomic<bool>* stop) {
  Crew& crew = *crew_;
  crew.job.separate = false;
  crew.counted = false;
  crew.play(stop);
  return last_run();
}

Execution Executor::last_run() const {
  const Crew& crew = *crew_;
  Execution result{crew.graph, {}, crew.version, {}};
  for (std::uint32_t task = 0; task < crew.graph.tasks(); ++task) {
    const Time end = crew.board.at(task);
    result.times.available.push_back(end);
    if (crew.graph.lanes[crew.graph.lane[task]].kind != LaneKind::send) {
      // A copy's latency is the link's: it counts as the copy's own time here.
      result.graph.duration[task] = end - crew.start[task];
      result.graph.path_of[task] = 0;
    } else if (crew.remote) {
      result.graph.duration[task] = end - crew.start[task];  // from leaving to being there
      result.graph.path_of[task] = 0;
    }
  }
  for (const at::Tensor& loss : crew.exchange.losses) {
    result.losses.push_back(loss.defined() ? loss.item<double>() : 0);
  }
  return result;
}

std::vector<HeldBytes> Executor::run_counted(const std::atomic<bool>* stop) {
  Crew& crew = *crew_;
  crew.job.separate = true;
  crew.counted = true;
  // Twice: only what was allocated under the allocator's eyes is seen when it is freed.
  for (int i = 0; i < 2; ++i) {
    for (std::size_t d = 0; d < crew.devices.size(); ++d) {
      crew.logs[d].restart();
      crew.held[d] = {};
    }
    crew.play(stop);
  }
  return crew.held;
}

const LayerWeights& Executor::weights(std::size_t layer) const {
  const int stage = crew_->job.partition.stage_of[layer];
  const StagePlace& place = nth(crew_->job.program.placement.stage, stage);
  const int device = place.weight_grad.empty() ? place.replicas[0] : place.weight_grad[0];
  return nth(crew_->tensors, device)->model().weights[layer];
}

}  // namespace stageline
