// Chooses which modules of a model are its layers.
//
//   |GPT_0                                             |     GPT_0 has nearly all of the time, so
//    |Embedding_0||Block_0    ||Block_1    ||Linear_9|       the modules inside of it are layers;
//                  |Attn_0|                                  those inside of a block are parts of
//                  it
#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>

#include "traces/kineto/layers.hpp"

namespace stageline {
namespace {

struct Node {
  std::size_t call = 0;  // index
  std::vector<std::size_t> inside{};
};

// The nodes of all calls, and which of them are in no other.
struct Forest {
  std::vector<Node> nodes;
  std::vector<std::size_t> roots;
};

Forest forest_of(const std::vector<ModuleCall>& calls) {
  Forest forest;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    forest.nodes.push_back({i});
    while (!open.empty() && calls[open.back()].end <= calls[i].start) open.pop_back();
    (open.empty() ? forest.roots : forest.nodes[open.back()].inside).push_back(i);
    open.push_back(i);
  }
  return forest;
}

}  // namespace

std::vector<ModuleCall> layer_calls(std::vector<ModuleCall> calls, double most) {
  std::sort(calls.begin(), calls.end(), [](const ModuleCall& a, const ModuleCall& b) {
    return std::tuple(a.start, -a.end) < std::tuple(b.start, -b.end);
  });
  const Forest forest = forest_of(calls);
  // Either each call of a module is divided, or none is: otherwise noise would decide.
  std::map<std::string_view, double> time;
  std::map<std::string_view, std::size_t> inside;
  double all = 0;
  for (const std::size_t root : forest.roots) {
    all += static_cast<double>(calls[root].end - calls[root].start);
  }
  for (const Node& node : forest.nodes) {
    const ModuleCall& call = calls[node.call];
    time[call.name] += static_cast<double>(call.end - call.start);
    std::size_t& least = inside.try_emplace(call.name, node.inside.size()).first->second;
    least = std::min(least, node.inside.size());
  }
  const auto divided = [&](const std::string& name) {
    if (inside.at(name) == 0) return false;
    return time.at(name) > most * all || name.starts_with("Sequential_");
  };
  std::vector<ModuleCall> layers;
  std::vector<std::size_t> next(forest.roots.rbegin(), forest.roots.rend());
  while (!next.empty()) {
    const Node& node = forest.nodes[next.back()];
    next.pop_back();
    if (divided(calls[node.call].name)) {
      next.insert(next.end(), node.inside.rbegin(), node.inside.rend());
    } else {
      layers.push_back(calls[node.call]);
    }
  }
  return layers;
}

}  // namespace stageline
