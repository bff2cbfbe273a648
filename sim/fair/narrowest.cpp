// Finds the resources that limit flows.
#include "sim/fair/narrowest.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace stageline {
namespace {

using Crossing = std::pair<std::uint32_t, double>;  // path, load

// The crossings of each resource, in the order of the paths.
class Crossings {
 public:
  explicit Crossings(const TaskGraph& graph) : begin_(graph.resources.size() + 1) {
    for (const Path& path : graph.paths) {
      for (const std::uint32_t resource : path.resources) ++begin_[resource + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    all_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t p = 0; p < graph.paths.size(); ++p) {
      const Path& path = graph.paths[p];
      for (std::size_t i = 0; i < path.resources.size(); ++i) {
        all_[next[path.resources[i]]++] = {p, path.load.empty() ? 1 : path.load[i]};
      }
    }
  }

  std::size_t resources() const { return begin_.size() - 1; }
  bool equal(std::size_t a, std::size_t b) const {
    return std::equal(at(a), at(a + 1), at(b), at(b + 1));
  }
  bool before(std::size_t a, std::size_t b) const {
    return std::lexicographical_compare(at(a), at(a + 1), at(b), at(b + 1));
  }

 private:
  const Crossing* at(std::size_t resource) const { return all_.data() + begin_[resource]; }

  std::vector<std::uint32_t> begin_;  // by resource, into all_
  std::vector<Crossing> all_;
};

}  // namespace

std::vector<bool> narrowest_resources(const TaskGraph& graph) {
  const Crossings crossed(graph);
  std::vector<std::size_t> order(crossed.resources());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (!crossed.equal(a, b)) return crossed.before(a, b);
    return std::pair(graph.capacity[a], a) < std::pair(graph.capacity[b], b);
  });
  std::vector<bool> narrowest(order.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (graph.capacity[order[i]].is_unlimited()) continue;
    narrowest[order[i]] = i == 0 || !crossed.equal(order[i], order[i - 1]);
  }
  return narrowest;
}

}  // namespace stageline
