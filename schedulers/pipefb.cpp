// PipeFB: forward and backward on different nodes, and activations by way of the host's memory.
// Rules rebuilt from the paper's abstract. An F-node does forwards only; as soon as a stash is made
// it is copied out to the host, and its room is free when the copy has ended. A B-node holds the
// master weights, does backward and update, and copies stashes in at the latest one backward ahead.
// After each update it sends the weights to the F-node, which never waits for them: it reads the
// newest that have arrived. A backward reads the weights that its forward read (kept on the
// B-node), or the newest.
//
// Layers are cut into contiguous pieces twice, over n_F F-nodes and over n_B B-nodes, each side so
// that its slowest node takes the least time (compute, copies, or sending weights, whichever is
// most); the finer of both cuts are the stages. A stage has at most a window of mini-batches in
// flight, ceil(its loop latency / the period), so that nothing waits without need; less where the
// host's memory holds less, and then the F-node waits for room (back-pressure).
//
// figure: devices 2, stages 1, microbatches 6, F 1, I 1, W 1
//   0 |01 2 3 4 5
//   1 | aabbccddeeff
#include <fmt/core.h>

#include <algorithm>

#include "schedulers/partition/chain_cut.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/analysis/memory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/interference.hpp"
#include "sim/lower/passes.hpp"

namespace stageline::pipefb_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"nodes", "best or nF-nB", "best", "F-nodes and B-nodes, such as 2-4; best: the fastest split"},
    {"backward", "stash|latest", "stash",
     "a backward reads the weights that its forward read, or the newest"},
    {"transfer", "full|half|blocking", "full",
     "copies to and from the host: both ways at once, in turns, or while computing waits"},
};

struct Nodes {
  int forward = 0;
  int backward = 0;
};

// Nothing for "best".
std::optional<Nodes> nodes_of(const std::string& text, int devices) {
  if (text == "best") return std::nullopt;
  const std::size_t dash = std::min(text.find('-'), text.size());
  Nodes nodes;
  nodes.forward = parse_number<int>(text.substr(0, dash)).value_or(0);
  nodes.backward = parse_number<int>(text.substr(std::min(dash + 1, text.size()))).value_or(0);
  if (nodes.forward < 1 || nodes.backward < 1) {
    throw UsageError(fmt::format(
        "pipefb: nodes are best, or F-nodes and B-nodes joined by '-', such as 2-4 (not \"{}\")",
        text));
  }
  const std::int64_t all = std::int64_t{nodes.forward} + nodes.backward;
  if (all != devices) {
    throw UsageError(
        fmt::format("pipefb: nodes={} are {} devices, but there are {}; give --devices {}", text,
                    all, devices, all));
  }
  return nodes;
}

Bandwidth narrowest(const std::vector<Route>& routes) {
  Bandwidth least = Bandwidth::unlimited();
  for (const Route& route : routes) least = std::min(least, route.bandwidth);
  return least;
}

Bandwidth narrowest_between_devices(const Network& network) {
  Bandwidth least = Bandwidth::unlimited();
  for (int from = 0; from < network.devices; ++from) {
    for (int to = 0; to < network.devices; ++to) {
      least = std::min(least, network.between(from, to).bandwidth);
    }
  }
  return least;
}

Placement assign(const Assignment& request) {
  const Costs& costs = request.costs;
  const int devices = static_cast<int>(request.rates.size());
  if (devices < 2) {
    throw UsageError("pipefb needs at least 2 devices, one F-node and one B-node (there is 1)");
  }
  const Bandwidth out = narrowest(costs.network.to_host);
  const Bandwidth in = narrowest(costs.network.from_host);
  const Bandwidth between = narrowest_between_devices(costs.network);
  std::vector<SideBySide> forward;
  std::vector<SideBySide> backward;
  for (std::size_t l = 0; l < costs.stage.size(); ++l) {
    const StageCosts& layer = costs.stage[l];
    try {
      forward.push_back({layer.forward, transfer_time(layer.stash(), out), Time{}});
      backward.push_back({layer.backward + layer.update, transfer_time(layer.stash(), in),
                          transfer_time(layer.weights, between)});
    } catch (const UsageError& error) {
      throw UsageError(
          fmt::format("pipefb: the stash or the weights of layer {}: {}", l, error.what()));
    }
  }
  const std::optional<Nodes> nodes = nodes_of(request.knobs.at("nodes"), devices);
  const SplitCut cut = nodes ? split_cut(forward, backward, nodes->forward, nodes->backward)
                             : split_cut(forward, backward, devices);
  const int first_backward = static_cast<int>(cut.forward_last.size()) + 1;
  Placement placement;
  std::size_t f = 0;
  std::size_t b = 0;
  for (int s = 0; s < costs.stages(); ++s) {
    StagePlace place;
    place.replicas = {static_cast<int>(f)};
    place.input_grad = place.weight_grad = {first_backward + static_cast<int>(b)};
    placement.stage.push_back(place);
    if (f < cut.forward_last.size() && cut.forward_last[f] == s) ++f;
    if (b < cut.backward_last.size() && cut.backward_last[b] == s) ++b;
  }
  return placement;
}

// Everything but windows. Stages of a node in the order of their layers, backwards the other way.
Program stream(const Problem& problem) {
  const bool stash = problem.knobs.at("backward") == "stash";
  Program program =
      blank_program(problem, "pipefb", stash ? WeightRule::stash : WeightRule::latest);
  const std::string& transfer = problem.knobs.at("transfer");
  program.settings.copies = transfer == "full"   ? Copies::full
                            : transfer == "half" ? Copies::half
                                                 : Copies::blocking;
  const auto add = [&](OpKind kind, int s, std::uint32_t m) {
    const Op op = op_of(kind, s, m);
    nth(program.ops, device_of(program.placement, op)).push_back(op);
  };
  for (std::uint32_t m = 0; m < program.total_microbatches(); ++m) {
    for (int s = 0; s < program.stages(); ++s) {
      add(OpKind::forward, s, m);
      add(OpKind::offload, s, m);
    }
    for (int s = program.stages() - 1; s >= 0; --s) {
      add(OpKind::prefetch, s, m);
      add(OpKind::backward, s, m);
    }
  }
  return program;
}

// Most bytes that each host holds at once under these windows, in a run long enough to fill them.
std::vector<Bytes> host_peaks(const Problem& problem, const std::vector<int>& window) {
  Problem some = problem;
  const std::int64_t all = std::int64_t{problem.microbatches} * problem.steps;
  const std::int64_t enough = 4 * *std::max_element(window.begin(), window.end()) + 8;
  some.microbatches = static_cast<int>(std::min(all, enough));
  some.steps = 1;
  Program program = stream(some);
  program.settings.window = window;
  program = complete(std::move(program), some.costs);
  TaskGraph graph = compile(program, some.costs);
  const TaskTimes times = simulate_together(graph, {});
  const Timeline timeline = timeline_of(program, graph, times);
  std::vector<Bytes> peaks;
  for (const DeviceMemory& host : memory_of(program, some.costs, timeline).host) {
    peaks.push_back(host.peak);
  }
  return peaks;
}

// What a host's memory does not hold is taken from the stage of its that it slows down least.
void fit_hosts(const Problem& problem, const std::vector<Time>& latency, std::vector<int>& window) {
  const Network& network = problem.costs.network;
  for (std::size_t h = 0; h < problem.host_memory.size(); ++h) {
    if (!problem.host_memory[h]) continue;
    while (true) {
      const Bytes held = host_peaks(problem, window)[h];
      if (held <= *problem.host_memory[h]) break;
      std::size_t best = window.size();
      double least = 0;
      for (std::size_t s = 0; s < window.size(); ++s) {
        const auto f = as_size(problem.placement.stage[s].replicas[0]);
        const bool here = network.host.empty() || network.host[f] == static_cast<int>(h);
        if (!here || window[s] == 1 || problem.costs.stage[s].stash() == Bytes{}) continue;
        const double period = static_cast<double>(latency[s].count()) / (window[s] - 1);
        if (best != window.size() && period >= least) continue;
        best = s;
        least = period;
      }
      if (best == window.size()) {
        throw UsageError(fmt::format(
            "pipefb: the memory of \"{}\" is {}, and one mini-batch in flight at every stage needs {} for activations; give it more, or take smaller micro-batches",
            network.hosts[h], print(*problem.host_memory[h]), print(held)));
      }
      --window[best];
    }
  }
}

// By stage ceil(loop latency / period): from the start of F to the end of B of a mini-batch that is
// alone, and what the busiest lane has to do for each.
std::vector<int> windows(const Problem& problem) {
  Problem one = problem;
  one.microbatches = one.steps = 1;
  const Program alone = complete(stream(one), one.costs);
  const TaskGraph graph = compile(alone, one.costs);
  const TaskTimes times = sweep(graph);
  std::vector<Time> latency(problem.placement.stage.size());
  std::vector<Time> start(latency.size());
  std::vector<Time> busy(graph.lanes.size());
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    busy[graph.lane[task]] += graph.duration[task];
    if (op.kind == OpKind::forward) start[op.stage] = start_of(graph, times, task);
    if (op.kind == OpKind::backward) latency[op.stage] = end_of(graph, times, task);
  }
  const Time period = *std::max_element(busy.begin(), busy.end());
  std::vector<int> window;
  for (std::size_t s = 0; s < latency.size(); ++s) {
    latency[s] -= start[s];
    const std::int64_t most = std::int64_t{problem.microbatches} * problem.steps;
    const std::int64_t wanted = period == Time{} ? 1 : (latency[s] + period - Time{1}) / period;
    window.push_back(
        static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(most, 1))));
  }
  fit_hosts(problem, latency, window);
  return window;
}

Program schedule(const Problem& problem) {
  Program program = stream(problem);
  program.settings.window = windows(problem);
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "pipefb",
    "forward and backward on different nodes, activations through host memory (rebuilt)",
    "PipeFB: pipelined training with forward and backward on different nodes (rules rebuilt)",
    Synchrony::asynchronous,
    knobs,
    nullptr,
    schedule,
    assign,
    "its rules are rebuilt from the paper's abstract",
    false,  // windows are as long as the program at most
};

}  // namespace stageline::pipefb_scheduler
