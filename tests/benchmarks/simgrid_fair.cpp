// Fair sharing beside SimGrid (Casanova et al. 2014): do flows get the same rates, and how many
// flow events a second do both reach?
//
//   * random networks: flows over several links, some of them bounded, some crossing a link twice;
//     every flow must end at SimGrid's moment, to a relative 1e-9, which takes the same rates.
//     (SimGrid 3.32 ignores the rate of a direct communication: a bound is a link of its own there)
//   * the collectives of groups.hpp on 128 machines of 8 devices: ends within a relative 1e-6;
//     SimGrid runs an actor for each lane, and a transfer is a communication over a route of all
//     ports that its collective crosses
//
// Debian installs no headers of SimGrid's solver, so its rates are seen through the ends of flows.
#include <fmt/format.h>

#include <xbt/log.h>
#include <cmath>
#include <simgrid/s4u.hpp>
#include <string>

#include "tests/benchmarks/groups.hpp"

namespace stageline::bench {
namespace {

namespace sg4 = simgrid::s4u;

double bytes_a_second(Bandwidth bandwidth) {
  return static_cast<double>(bandwidth.bytes_per_second);
}

// The links of a task graph, and a pair of hosts for each of its paths, whose route crosses them.
class Platform {
 public:
  Platform(sg4::NetZone& parent, const std::string& name, const TaskGraph& graph)
      : graph_(graph), zone_(sg4::create_full_zone(name)) {
    zone_->set_parent(&parent);
    std::vector<const sg4::Link*> links;
    for (std::size_t r = 0; r < graph.resources.size(); ++r) {
      links.push_back(
          zone_->create_link(fmt::format("{}l{}", name, r), bytes_a_second(graph.capacity[r]))
              ->seal());
    }
    for (std::size_t p = 0; p < graph.paths.size(); ++p) {
      const auto host = [&](const char* side) {
        return zone_->create_host(fmt::format("{}{}{}", name, side, p), 1.0)->seal();
      };
      from_.push_back(host("f"));
      to_.push_back(host("t"));
      const Path& path = graph.paths[p];
      std::vector<sg4::LinkInRoute> route;
      for (std::size_t i = 0; i < path.resources.size(); ++i) {
        const auto times = path.load.empty() ? 1 : std::lround(path.load[i]);
        for (long k = 0; k < times; ++k) route.emplace_back(links[path.resources[i]]);
      }
      if (!path.bandwidth.is_unlimited()) {
        route.emplace_back(
            zone_->create_link(fmt::format("{}b{}", name, p), bytes_a_second(path.bandwidth))
                ->seal());
      }
      if (route.empty()) continue;
      zone_->add_route(from_[p]->get_netpoint(), to_[p]->get_netpoint(), nullptr, nullptr, route,
                       false);
    }
    zone_->seal();
  }

  // The end of every task, in seconds.
  std::vector<double> run(sg4::Engine& engine) const {
    const double start = sg4::Engine::get_clock();
    std::vector<double> end(graph_.tasks());
    for (std::size_t lane = 0; lane < graph_.lanes.size(); ++lane) {
      if (graph_.lane_begin[lane] == graph_.lane_begin[lane + 1]) continue;
      sg4::Actor::create("lane", from_[0], [this, lane, start, &end] { send(lane, start, end); });
    }
    engine.run();
    return end;
  }

 private:
  void send(std::size_t lane, double start, std::vector<double>& end) const {
    for (std::uint32_t i = graph_.lane_begin[lane]; i < graph_.lane_begin[lane + 1]; ++i) {
      const std::uint32_t task = graph_.lane_task[i];
      const std::uint16_t p = graph_.path_of[task];
      sg4::Comm::sendto(from_[p], to_[p], static_cast<std::uint64_t>(graph_.bytes[task].count));
      end[task] = sg4::Engine::get_clock() - start;
    }
  }

  const TaskGraph& graph_;
  sg4::NetZone* zone_;
  std::vector<sg4::Host*> from_;  // by path
  std::vector<sg4::Host*> to_;    // by path
};

// A few flows, each in a lane of its own.
TaskGraph random_network(std::mt19937& random) {
  const auto number = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  std::vector<double> capacity(static_cast<std::size_t>(number(1, 8)));
  for (double& one : capacity) one = number(1'000'000, 9'000'000) * 1e-12;
  test::GraphWriter writer(1, capacity);
  for (int flow = number(2, 14); flow > 0; --flow) {
    Path path;
    for (std::uint32_t link = 0; link < capacity.size(); ++link) {
      if (number(0, 2) > 0) continue;
      path.resources.push_back(link);
      path.load.push_back(number(0, 3) == 0 ? 2 : 1);
    }
    if (path.resources.empty()) {
      path.resources.push_back(0);
      path.load.push_back(1);
    }
    if (number(0, 2) == 0) path.bandwidth = {number(100'000, 4'000'000)};
    writer.task(writer.lane(0, LaneKind::send), Time{1}, {}, writer.path(path),
                Bytes{number(100'000'000, 1'000'000'000)});
  }
  return writer.graph();
}

double largest_difference(const TaskTimes& ours, const std::vector<double>& theirs) {
  double largest = 0;
  for (std::size_t task = 0; task < theirs.size(); ++task) {
    const double end = to_seconds(ours.available[task]);
    largest = std::max(largest, std::abs(end - theirs[task]) / end);
  }
  return largest;
}

// Flows whose end the alone rule gives would need durations; here each takes what its rates say.
TaskTimes run_by_rates(const TaskGraph& graph) {
  TaskGraph copy = graph;
  for (std::uint32_t task = 0; task < copy.tasks(); ++task) {
    const Bandwidth bound = copy.paths[copy.path_of[task]].bandwidth;
    if (!bound.is_unlimited()) copy.duration[task] = transfer_time(copy.bytes[task], bound);
  }
  return run_fair(copy);
}

bool networks_agree(sg4::Engine& engine, const std::vector<TaskGraph>& graphs,
                    const std::vector<Platform>& platforms) {
  double largest = 0;
  std::size_t flows = 0;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    largest =
        std::max(largest, largest_difference(run_by_rates(graphs[i]), platforms[i].run(engine)));
    flows += graphs[i].tasks();
  }
  fmt::print("{} random networks, {} flows: ends differ by at most {:.1e} of themselves\n",
             graphs.size(), flows, largest);
  return largest <= 1e-9;
}

bool groups_agree(sg4::Engine& engine, const Groups& groups, const TaskGraph& graph,
                  const Platform& platform) {
  std::vector<double> theirs;
  TaskTimes ours;
  std::vector<Time> took;
  const double their_seconds = median_seconds(3, [&] { theirs = platform.run(engine); });
  const double our_seconds = median_seconds(5, [&] { ours = run_fair(graph, took); });
  const double largest = largest_difference(ours, theirs);
  const double events = 2.0 * graph.tasks();
  fmt::print(
      "{} devices, {}: {} flows; SimGrid {:.0f} events a second, run_fair {:.0f} ({:.1f}x); "
      "ends differ by at most {:.1e} of themselves\n",
      groups.machines * rails, groups.messages ? "with messages" : "collectives", graph.tasks(),
      events / their_seconds, events / our_seconds, their_seconds / our_seconds, largest);
  return largest <= 1e-6;
}

int compare_fair(int argc, char** argv) {
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
  sg4::NetZone& world = *sg4::create_full_zone("world");
  std::mt19937 random(5);
  std::vector<TaskGraph> networks;
  for (int i = 0; i < (quick ? 20 : 300); ++i) networks.push_back(random_network(random));
  std::vector<Platform> network_platforms;
  for (std::size_t i = 0; i < networks.size(); ++i) {
    network_platforms.emplace_back(world, fmt::format("n{}", i), networks[i]);
  }
  std::vector<Groups> groups;
  std::vector<TaskGraph> graphs;
  for (const bool messages : {false, true}) {
    groups.push_back({128, quick ? 8 : 64, messages});
    graphs.push_back(GroupsWriter(groups.back()).graph());
  }
  std::vector<Platform> platforms;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    platforms.emplace_back(world, fmt::format("g{}", i), graphs[i]);
  }
  world.seal();

  bool right = networks_agree(engine, networks, network_platforms);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    right = groups_agree(engine, groups[i], graphs[i], platforms[i]) && right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace stageline::bench

int main(int argc, char** argv) { return stageline::bench::compare_fair(argc, argv); }
