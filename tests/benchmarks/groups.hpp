// The collectives that the benchmarks of fair sharing time: machines of eight devices, a tensor-
// parallel group in each machine and a data-parallel ring on each rail; in one variant also
// pipeline messages, which share NICs with the rings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

#include "sim/engine.hpp"
#include "tests/schedules/fair_graph.hpp"

namespace stageline::bench {

constexpr int rails = 8;  // devices of a machine

/// A ring crosses every port of its ranks as often as its bytes count: loads of 1.
struct Groups {
  int machines = 8;
  int collectives = 1000;  // of a tensor-parallel group; rings and messages are fewer and longer
  bool messages = false;   // from every even machine to the next, on every rail
};

class GroupsWriter {
 public:
  explicit GroupsWriter(const Groups& groups) : groups_(groups), writer_(devices(), capacities()) {
    for (int m = 0; m < groups.machines; ++m) add_machine(m);
    for (int rail = 0; rail < rails; ++rail) add_ring(rail);
    for (int m = 0; groups.messages && m + 1 < groups.machines; m += 2) {
      for (int rail = 0; rail < rails; ++rail) add_messages(m, rail);
    }
    add_tasks();
  }

  TaskGraph graph() const { return writer_.graph(); }

 private:
  enum Port { nvlink_out, nvlink_in, nic_out, nic_in, ports };
  struct Line {  // of transfers, one after another
    std::uint16_t lane = 0;
    std::uint16_t path = 0;
    int transfers = 0;
    std::int64_t bytes = 0;
  };

  int devices() const { return groups_.machines * rails; }
  std::vector<double> capacities() const {
    std::vector<double> bytes_per_ps;
    for (int d = 0; d < devices(); ++d) {
      bytes_per_ps.insert(bytes_per_ps.end(), {0.45, 0.45, 0.05, 0.05});  // 450 and 50 GB/s
    }
    return bytes_per_ps;
  }
  static std::uint32_t port(int machine, int rail, Port kind) {
    return static_cast<std::uint32_t>((machine * rails + rail) * ports + kind);
  }
  void add(int machine, int rail, std::vector<std::uint32_t> resources, int transfers,
           std::int64_t bytes) {
    Path path;
    path.resources = std::move(resources);
    lines_.push_back({writer_.lane(machine * rails + rail, LaneKind::send),
                      writer_.path(std::move(path)), transfers, bytes});
  }
  void add_machine(int machine) {
    std::vector<std::uint32_t> resources;
    for (int rail = 0; rail < rails; ++rail) {
      for (const Port kind : {nvlink_out, nvlink_in})
        resources.push_back(port(machine, rail, kind));
    }
    add(machine, 0, std::move(resources), groups_.collectives, 64'000'000);
  }
  void add_ring(int rail) {
    std::vector<std::uint32_t> resources;
    for (int m = 0; m < groups_.machines; ++m) {
      for (const Port kind : {nic_out, nic_in}) resources.push_back(port(m, rail, kind));
    }
    add(0, rail, std::move(resources), std::max(1, groups_.collectives / 16), 100'000'000);
  }
  void add_messages(int machine, int rail) {
    add(machine, rail, {port(machine, rail, nic_out), port(machine + 1, rail, nic_in)},
        std::max(1, groups_.collectives / 8), 40'000'000);
  }

  void add_tasks() {
    std::mt19937 random(1);
    std::vector<int> left;
    for (const Line& line : lines_) left.push_back(line.transfers);
    for (bool any = true; any;) {
      any = false;
      for (std::size_t l = 0; l < lines_.size(); ++l) {
        if (left[l]-- <= 0) continue;
        const Line& line = lines_[l];
        const std::int64_t bytes = line.bytes + line.bytes / 1000 * (random() % 500);
        writer_.task(line.lane, Time{1}, {}, line.path, Bytes{bytes});
        any = true;
      }
    }
  }

  Groups groups_;
  test::GraphWriter writer_;
  std::vector<Line> lines_;
};

/// Of processor time, the median.
inline double median_seconds(int repeats, const std::function<void()>& once) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const std::clock_t start = std::clock();
    once();
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace stageline::bench
