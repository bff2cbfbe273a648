// How fast are we beside SimGrid (Casanova et al. 2014), and do we agree with it? The same
// pipeline: 1F1B in the order of our program, the same times, a wire of its own between every two
// neighbours.
//
//   * actors: one a device; receives posted ahead, sends detached: SimGrid's usual programming
//     model
//   * graph:  no actors, activities with dependencies: SimGrid's DAG interface, at a small size
//   * run, sweep: ours; run also with ports, where links are shared
//   * compile and run: lowering the program, too; from then on as run
//
// The last column is the rate over that of SimGrid's actors.
//
// The messages are shorter than any op, so a device's next send never waits for its last and no
// wire is shared: a contention-free case, in which all must give one makespan. SimGrid counts in
// doubles: 1 µs here is 1 s there, so all its moments are whole numbers.
#include <fmt/format.h>

#include <xbt/log.h>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <functional>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "sim/base/pages.hpp"
#include "tests/benchmarks/pipeline.hpp"

namespace stageline::bench {
namespace {

namespace sg4 = simgrid::s4u;

constexpr int repeats = 5;
constexpr Time unit{1'000'000};

double units(Time time) {
  const std::int64_t whole = time / unit;
  return static_cast<double>(whole);
}

struct Measured {
  double makespan = 0;  // units
  double seconds = 0;   // of processor time, median
};

// `once` gives the makespan.
Measured measure(const std::function<double()>& once) {
  Measured measured;
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const std::clock_t start = std::clock();
    measured.makespan = once();
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  measured.seconds = seconds[repeats / 2];
  return measured;
}

// Hosts of one flop a unit, and between neighbours two wires of a million bytes a unit.
constexpr std::uint64_t message_bytes = 1'000'000;

std::vector<sg4::Host*> make_hosts(sg4::NetZone& zone, const std::string& prefix, int devices) {
  std::vector<sg4::Host*> hosts;
  for (int s = 0; s < devices; ++s) {
    hosts.push_back(zone.create_host(prefix + std::to_string(s), 1.0)->seal());
  }
  const auto join = [&](int from, int to) {
    const std::string name = fmt::format("{}{}>{}", prefix, from, to);
    const sg4::Link* const wire = zone.create_link(name, double{message_bytes})->seal();
    zone.add_route(hosts[static_cast<std::size_t>(from)]->get_netpoint(),
                   hosts[static_cast<std::size_t>(to)]->get_netpoint(), nullptr, nullptr,
                   {sg4::LinkInRoute(wire)}, false);
  };
  for (int s = 0; s + 1 < devices; ++s) {
    join(s, s + 1);
    join(s + 1, s);
  }
  return hosts;
}

// Receives posted ahead, so that a message flows as soon as it is sent. More than a few cost
// SimGrid time; fewer than its neighbour is ahead by would show in the makespan.
constexpr int ahead = 4;

class Inbox {
 public:
  Inbox(sg4::Mailbox* box, int messages) : box_(box), messages_(messages) {
    for (int i = 0; i < ahead; ++i) post();
  }
  void take() {
    posted_.front()->wait();
    posted_.pop_front();
    post();
  }

 private:
  void post() {
    if (messages_ == 0) return;
    --messages_;
    posted_.push_back(box_->get_async<int>(&payload_));
  }

  sg4::Mailbox* box_;
  int messages_;
  int* payload_ = nullptr;
  std::deque<sg4::CommPtr> posted_;
};

// What one device does, as an actor.
void device(const Program& program, const Pipeline& pipeline, int s) {
  const int last = pipeline.devices - 1;
  const auto activations_of = [](int stage) {
    return sg4::Mailbox::by_name(fmt::format("f{}", stage));
  };
  const auto gradients_of = [](int stage) {
    return sg4::Mailbox::by_name(fmt::format("g{}", stage));
  };
  const double forward = units(pipeline.forward);
  const double backward = units(pipeline.backward);
  Inbox activations(activations_of(s), s > 0 ? pipeline.microbatches : 0);
  Inbox gradients(gradients_of(s), s < last ? pipeline.microbatches : 0);
  sg4::Mailbox* const next = activations_of(s + 1);
  sg4::Mailbox* const previous = gradients_of(s - 1);
  int payload = 0;
  for (const Op op : program.ops[static_cast<std::size_t>(s)]) {
    if (op.kind == OpKind::forward) {
      if (s > 0) activations.take();
      sg4::this_actor::execute(forward);
      if (s < last) next->put_init(&payload, message_bytes)->detach();
    } else {
      if (s < last) gradients.take();
      sg4::this_actor::execute(backward);
      if (s > 0) previous->put_init(&payload, message_bytes)->detach();
    }
  }
}

double run_actors(sg4::Engine& engine, const std::vector<sg4::Host*>& hosts, const Program& program,
                  const Pipeline& pipeline) {
  const double start = sg4::Engine::get_clock();
  for (int s = 0; s < pipeline.devices; ++s) {
    sg4::Actor::create("device", hosts[static_cast<std::size_t>(s)],
                       [&program, &pipeline, s] { device(program, pipeline, s); });
  }
  engine.run();
  return sg4::Engine::get_clock() - start;
}

double run_graph(sg4::Engine& engine, const std::vector<sg4::Host*>& hosts, const Program& program,
                 const Pipeline& pipeline) {
  const double start = sg4::Engine::get_clock();
  const auto p = static_cast<std::size_t>(pipeline.devices);
  const auto m = static_cast<std::size_t>(pipeline.microbatches);
  std::vector<sg4::ExecPtr> forward(p * m);
  std::vector<sg4::ExecPtr> backward(p * m);
  for (std::size_t s = 0; s < p; ++s) {
    sg4::ExecPtr before;
    for (const Op op : program.ops[s]) {
      const bool is_forward = op.kind == OpKind::forward;
      sg4::ExecPtr exec = sg4::Exec::init();
      exec->set_flops_amount(units(is_forward ? pipeline.forward : pipeline.backward));
      exec->set_host(hosts[s]);
      if (before) before->add_successor(exec);
      before = exec;
      (is_forward ? forward : backward)[s * m + op.microbatch] = exec;
    }
  }
  std::vector<sg4::CommPtr> messages;
  const auto send = [&](const sg4::ExecPtr& maker, const sg4::ExecPtr& reader) {
    sg4::CommPtr message = sg4::Comm::sendto_init(maker->get_host(), reader->get_host());
    message->set_payload_size(message_bytes);
    maker->add_successor(message);
    message->add_successor(reader);
    messages.push_back(message);
  };
  for (std::size_t s = 0; s + 1 < p; ++s) {
    for (std::size_t i = 0; i < m; ++i) {
      send(forward[s * m + i], forward[(s + 1) * m + i]);
      send(backward[(s + 1) * m + i], backward[s * m + i]);
    }
  }
  for (const auto& exec : forward) exec->vetoable_start();
  for (const auto& exec : backward) exec->vetoable_start();
  for (const auto& message : messages) message->vetoable_start();
  engine.run();
  return sg4::Engine::get_clock() - start;
}

bool agree(const char* who, double theirs, double ours) {
  if (std::abs(theirs - ours) <= 1e-9 * ours) return true;
  fmt::print(stderr, "{}: makespan {} units, ours {}\n", who, theirs, ours);
  return false;
}

struct Ours {
  Program compute_only;
  TaskGraph own;
  Program ports_program;
  Costs ports_costs;
  TaskGraph ports;
};

Ours ours_of(Pipeline pipeline) {
  Ours ours;
  ours.compute_only = scheduler("1f1b").schedule(problem_of(pipeline));
  const Costs own_costs = costs_of(pipeline);
  ours.own = compile(complete(ours.compute_only, own_costs), own_costs);
  pipeline.wires = Wires::ports;
  ours.ports_costs = costs_of(pipeline);
  ours.ports_program = complete(ours.compute_only, ours.ports_costs);
  ours.ports = compile(ours.ports_program, ours.ports_costs);
  return ours;
}

struct Row {
  const char* who;
  double activities;
  double seconds;
};

void print_rows(const Pipeline& pipeline, const std::vector<Row>& rows) {
  const double base = rows.front().activities / rows.front().seconds;
  for (const Row& row : rows) {
    const double rate = row.activities / row.seconds;
    fmt::print(
        "{:>3} x {:<5} {:<22} {:>8.0f} activities {:>9.2f} ms {:>11.0f} a second {:>7.1f}x\n",
        pipeline.devices, pipeline.microbatches, row.who, row.activities, 1e3 * row.seconds, rate,
        rate / base);
  }
}

int compare(int argc, char** argv) {
  keep_freed_memory();
  xbt_log_control_set("xbt_cfg.threshold:warning");
  sg4::Engine engine(&argc, argv);
  // Whole bandwidth, no latency, no acknowledgements in the other direction.
  engine.set_config("network/model:CM02");
  engine.set_config("network/bandwidth-factor:1");
  engine.set_config("network/latency-factor:1");
  engine.set_config("network/weight-S:0");
  engine.set_config("network/crosstraffic:0");
  engine.set_config("contexts/stack-size:64");  // kiB

  const bool quick = argc > 1 && std::string(argv[1]) == "--quick";
  Pipeline large;
  large.devices = quick ? 8 : 64;
  large.microbatches = quick ? 64 : 4096;
  large.wires = Wires::own;
  Pipeline small = large;
  small.devices = 8;
  small.microbatches = quick ? 16 : 256;

  sg4::NetZone& zone = *sg4::create_full_zone("cluster");
  const auto large_hosts = make_hosts(zone, "large", large.devices);
  const auto small_hosts = make_hosts(zone, "small", small.devices);
  zone.seal();

  bool right = true;
  for (const Pipeline& pipeline : {small, large}) {
    const bool is_small = pipeline.microbatches == small.microbatches;
    const auto& hosts = is_small ? small_hosts : large_hosts;
    const Ours ours = ours_of(pipeline);
    const double expected = units(makespan(sweep(ours.own)));
    // Updates are ours alone, and take no time.
    const double tasks = static_cast<double>(ours.own.tasks()) - pipeline.devices;
    std::vector<Row> rows;
    const auto add = [&](const char* who, const std::function<double()>& once) {
      const Measured measured = measure(once);
      rows.push_back({who, tasks, measured.seconds});
      return measured.makespan;
    };
    const auto check = [&](const char* who, const std::function<double()>& once) {
      right = agree(who, add(who, once), expected) && right;
    };
    check("SimGrid actors", [&] { return run_actors(engine, hosts, ours.compute_only, pipeline); });
    if (is_small) {
      check("SimGrid graph", [&] { return run_graph(engine, hosts, ours.compute_only, pipeline); });
    }
    add("run, ports", [&] { return units(makespan(run(ours.ports))); });
    add("compile and run, ports",
        [&] { return units(makespan(run(compile(ours.ports_program, ours.ports_costs)))); });
    check("run, own wires", [&] { return units(makespan(run(ours.own))); });
    check("sweep, own wires", [&] { return units(makespan(sweep(ours.own))); });
    print_rows(pipeline, rows);
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace stageline::bench

int main(int argc, char** argv) { return stageline::bench::compare(argc, argv); }
