// What tests of replicated pipelines share: clusters side by side, and when each op begins. Needs
// sim/ only.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "sim/base/index.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"

namespace stageline::test {

/// The costs of one pipeline, for `replicas` of them on equal clusters side by side. Routes from
/// one cluster to another are free.
inline Costs side_by_side(const Costs& one, int replicas) {
  Costs all = one;
  Network& network = all.network;
  const Network& each = one.network;
  network.devices = each.devices * replicas;
  network.routes.clear();
  network.to_host.clear();
  network.from_host.clear();
  network.host.clear();
  network.hosts.clear();
  network.resources.clear();
  network.capacity.clear();
  const auto moved = [&](Route route, int replica) {
    for (int& resource : route.resources) {
      resource += replica * static_cast<int>(each.resources.size());
    }
    return route;
  };
  for (int r = 0; r < replicas; ++r) {
    for (int from = 0; from < each.devices; ++from) {
      for (int to = 0; to < network.devices; ++to) {
        const bool same = to / each.devices == r;
        network.routes.push_back(same ? moved(each.between(from, to % each.devices), r) : Route{});
      }
      network.to_host.push_back(moved(nth(each.to_host, from), r));
      network.from_host.push_back(moved(nth(each.from_host, from), r));
      if (!each.host.empty()) {
        network.host.push_back(nth(each.host, from) + r * static_cast<int>(each.hosts.size()));
      }
    }
    network.hosts.insert(network.hosts.end(), each.hosts.begin(), each.hosts.end());
    network.resources.insert(network.resources.end(), each.resources.begin(), each.resources.end());
    network.capacity.insert(network.capacity.end(), each.capacity.begin(), each.capacity.end());
  }
  return all;
}

using Starts = std::map<std::pair<int, Op>, Time>;  // device, op → start

inline Starts starts_of(const Program& program, const Costs& costs) {
  const TaskGraph graph = compile(program, costs);
  const TaskTimes times = simulate(graph);
  Starts starts;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    starts[{graph.lanes[graph.lane[task]].device, plain(graph.op[task])}] =
        start_of(graph, times, task);
  }
  return starts;
}

/// Empty if every op of `one` begins, in each of its replicas within `all`, when it begins in
/// `one`; else the first op that does not. Reductions do not count: on one lane, those of a
/// pipeline with replicas of its own may have to wait for those that the others have, too.
inline std::string first_to_differ(const Starts& one, const Starts& all, int devices,
                                   int replicas) {
  for (const auto& [where, start] : one) {
    if (where.second.kind == OpKind::reduce_grad) continue;
    for (int r = 0; r < replicas; ++r) {
      const auto number = static_cast<std::uint32_t>(r);
      const auto count = static_cast<std::uint32_t>(replicas);
      Op op = where.second;
      if (counts_microbatches(op.kind)) {
        op = op_of(op.kind, op.stage, op.microbatch * count + number, op.part);
      } else {
        op = op_of(op.kind, op.stage, op.microbatch, op.part * replicas + r);
      }
      const auto found = all.find({r * devices + where.first, op});
      if (found == all.end()) return print(op) + " is not there";
      if (found->second != start) return print(op) + " begins at another time";
    }
  }
  return "";
}

}  // namespace stageline::test
