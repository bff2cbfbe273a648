#include "sim/fair/shortest.hpp"

#include <algorithm>

#include "sim/base/index.hpp"
#include "sim/engine.hpp"

namespace stageline {
namespace {

constexpr double rounding = 1e-9;  // of a rate, and of a whole picosecond at each change of it

Time part_of(Time time, double part) {
  return Time{static_cast<std::int64_t>(static_cast<double>(time.count()) * part)};
}

double most_slowdown_of_compute(const TaskGraph& graph) {
  double slowdown = 1;
  for (std::size_t tier = 0; tier < tiers; ++tier) {
    slowdown += std::max(graph.overlap_slowdown[tier], graph.message_slowdown[tier]);
  }
  return slowdown;
}

}  // namespace

Time shortest(const TaskGraph& graph, std::uint32_t task) {
  const Time took = graph.duration[task];
  if (!is_fair(graph)) return took;
  const bool computes = graph.lanes[graph.lane[task]].kind == LaneKind::compute;
  const Path& path = graph.paths[graph.path_of[task]];
  if (!computes && graph.bytes[task] > Bytes{} && !path.resources.empty()) {
    double moves = 0;  // picoseconds
    if (!path.bandwidth.is_unlimited()) {
      moves = static_cast<double>(graph.bytes[task].count) * 1e12 /
              static_cast<double>(path.bandwidth.bytes_per_second);
    }
    return std::min(took, path.setup + Time{static_cast<std::int64_t>(moves * (1 - rounding))});
  }
  const double slowdown =
      computes ? most_slowdown_of_compute(graph) : 1 + nth(graph.transfer_slowdown, path.tier);
  return slowdown == 1 ? took : part_of(took, (1 - rounding) / slowdown);
}

}  // namespace stageline
