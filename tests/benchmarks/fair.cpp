// How many flow events a second does fair sharing reach? A flow has two: it begins and ends. On 8
// machines of 8 devices with a tensor-parallel group each and a data-parallel ring on each rail
// (which share no port: rates change at these events only); with pipeline messages beside the rings
// (a change reaches the flows of a rail); and both on 128 machines.
#include <fmt/format.h>

#include "tests/benchmarks/groups.hpp"

namespace stageline::bench {
namespace {

void print_rate(const Groups& groups) {
  const TaskGraph graph = GroupsWriter(groups).graph();
  std::vector<Time> took;
  Time end{};
  const double seconds = median_seconds(5, [&] { end = makespan(run_fair(graph, took)); });
  const double events = 2.0 * graph.tasks();
  fmt::print("{:>4} x {} {:<15} {:>8} flows {:>9.2f} ms {:>11.0f} events a second, ends at {}\n",
             groups.machines, rails, groups.messages ? "with messages" : "collectives",
             graph.tasks(), 1e3 * seconds, events / seconds, print(end));
}

void print_rates(bool quick) {
  for (const int machines : {8, 128}) {
    for (const bool messages : {false, true}) {
      Groups groups;
      groups.machines = machines;
      groups.messages = messages;
      groups.collectives = (quick ? 1'000 : 100'000) / machines;
      print_rate(groups);
    }
  }
}

}  // namespace
}  // namespace stageline::bench

int main(int argc, char** argv) {
  stageline::bench::print_rates(argc > 1 && std::string(argv[1]) == "--quick");
}
