// Finds the links that all flows load alike, and writes routes over one of each kind.
#include "cost_models/network/alike_links.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Calls each(entry, resource, number of its load among the different loads of the route).
template <class Each>
void entries_of(const Route& route, const Each& each) {
  std::vector<double> loads;
  std::size_t at = 0;
  for (std::size_t i = 0; i < route.resources.size(); ++i) {
    const double load = route.load.empty() ? 1 : route.load[i];
    if (at >= loads.size() || loads[at] != load) {
      at = static_cast<std::size_t>(std::find(loads.begin(), loads.end(), load) - loads.begin());
      if (at == loads.size()) loads.push_back(load);
    }
    each(i, route.resources[i], at);
  }
}

// Numbers the kinds: those of the routes between ranks in their order, each divided by what the
// reductions load, and then those that reductions alone take.
class Kinds {
 public:
  Kinds(const ResourceNumbers& numbers, const std::vector<const Route*>& reductions,
        const ResourceFacts& facts)
      : numbers_(numbers), facts_(facts), loads_(facts.names.size()) {
    for (std::size_t s = 0; s < reductions.size(); ++s) {
      entries_of(*reductions[s], [&](std::size_t, int resource, std::size_t load) {
        nth(loads_, resource) += mixed((static_cast<std::uint64_t>(s) << 32U) + load);
      });
    }
    divide();
  }

  // The number of a resource's kind.
  int number(int resource) {
    const int of_ranks = numbers_.find(resource);
    const std::uint64_t loads = nth(loads_, resource);
    if (of_ranks >= 0) {
      const auto& parts = nth(parts_, of_ranks);
      return std::find_if(parts.begin(), parts.end(),
                          [&](const Part& part) { return part.loads == loads; })
          ->number;
    }
    const auto next = static_cast<int>(resources_.size());
    const auto [known, is_new] = others_.try_emplace({numbers_.kind(resource), loads}, next);
    if (is_new) resources_.push_back(resource);
    return known->second;
  }

  // One of each kind.
  const std::vector<int>& resources() const { return resources_; }

  bool are_divided() const { return divided_; }

  // By number of `numbers`, those of its parts.
  std::vector<std::vector<int>> parts() const {
    std::vector<std::vector<int>> all;
    for (const std::vector<Part>& of_kind : parts_) {
      std::vector<int>& one = all.emplace_back();
      for (const Part& part : of_kind) one.push_back(part.number);
    }
    return all;
  }

 private:
  struct Part {
    std::uint64_t loads = 0;
    int resource = 0;
    int number = 0;
  };

  void divide() {
    for (const int first : numbers_.used()) parts_.push_back({{nth(loads_, first), first, 0}});
    for (int resource = 0; resource < static_cast<int>(loads_.size()); ++resource) {
      const int of_ranks = numbers_.find(resource);
      if (of_ranks < 0) continue;
      std::vector<Part>& parts = nth(parts_, of_ranks);
      const std::uint64_t loads = nth(loads_, resource);
      if (std::any_of(parts.begin(), parts.end(),
                      [&](const Part& part) { return part.loads == loads; })) {
        continue;
      }
      parts.push_back({loads, resource, 0});
      divided_ = true;
    }
    for (std::vector<Part>& parts : parts_) {
      for (Part& part : parts) {
        part.number = static_cast<int>(resources_.size());
        resources_.push_back(part.resource);
      }
    }
  }

  const ResourceNumbers& numbers_;
  const ResourceFacts& facts_;
  std::vector<std::uint64_t> loads_;      // by resource, of all reductions
  std::vector<std::vector<Part>> parts_;  // by number of `numbers_`
  std::map<std::pair<int, std::uint64_t>, int> others_;
  std::vector<int> resources_;
  bool divided_ = false;
};

// The route over all parts of what it takes.
Route over_parts(const Route& route, const std::vector<std::vector<int>>& parts) {
  Route all = route;
  all.resources.clear();
  all.load.clear();
  for (std::size_t i = 0; i < route.resources.size(); ++i) {
    for (const int part : nth(parts, route.resources[i])) {
      all.resources.push_back(part);
      if (!route.load.empty()) all.load.push_back(route.load[i]);
    }
  }
  return all;
}

std::shared_ptr<FoundRoutes> over_parts(const std::shared_ptr<FoundRoutes>& found,
                                        const std::vector<std::vector<int>>& parts) {
  if (!found) return found;
  return std::make_shared<FoundRoutes>(
      [found, parts](int from, int to) { return over_parts(found->between(from, to), parts); });
}

}  // namespace

std::vector<int> first_alike(const RouteUses& uses, const std::vector<Bandwidth>& capacity) {
  std::unordered_map<std::uint64_t, int> first;
  std::vector<int> alike(capacity.size());
  for (std::size_t r = 0; r < capacity.size(); ++r) {
    const auto of_link = static_cast<std::uint64_t>(capacity[r].bytes_per_second);
    const auto resource = static_cast<int>(r);
    alike[r] = first.try_emplace(uses.loads[r] + mixed(of_link), resource).first->second;
  }
  return alike;
}

FoldedNetwork folded(const Network& network, const std::shared_ptr<FoundRoutes>& scattered,
                     const ResourceNumbers& numbers, const std::vector<const Route*>& reductions,
                     const ResourceFacts& facts) {
  Kinds kinds(numbers, reductions, facts);
  FoldedNetwork all{network, scattered, {}};
  for (const Route* const route : reductions) {
    std::vector<FoldedNetwork::Entry>& entries = all.reductions.emplace_back();
    std::vector<bool> taken;  // by number
    entries_of(*route, [&](std::size_t at, int resource, std::size_t) {
      const int number = kinds.number(resource);
      if (as_size(number) >= taken.size()) taken.resize(as_size(number) + 1);
      if (taken[as_size(number)]) return;
      taken[as_size(number)] = true;
      entries.push_back({at, number});
    });
  }
  if (kinds.are_divided()) {
    const std::vector<std::vector<int>> parts = kinds.parts();
    all.network.found = over_parts(network.found, parts);
    all.scattered = over_parts(scattered, parts);
    for (Route& route : all.network.to_host) route = over_parts(route, parts);
    for (Route& route : all.network.from_host) route = over_parts(route, parts);
  }
  for (const int resource : kinds.resources()) {
    all.network.resources.push_back(nth(facts.names, resource));
    all.network.capacity.push_back(nth(facts.capacity, resource));
  }
  return all;
}

std::uint64_t pattern_of(const std::vector<const Route*>& reductions) {
  std::uint64_t pattern = mixed(reductions.size());
  for (std::size_t s = 0; s < reductions.size(); ++s) {
    entries_of(*reductions[s], [&](std::size_t at, int resource, std::size_t load) {
      const std::uint64_t where = (static_cast<std::uint64_t>(at) << 32U) + as_size(resource);
      pattern += mixed(mixed(where) + (static_cast<std::uint64_t>(s) << 32U) + load);
    });
  }
  return pattern;
}

void keep_entries(Route& route, const std::vector<FoldedNetwork::Entry>& entries) {
  Route kept = std::exchange(route, {});
  route.bandwidth = kept.bandwidth;
  route.latency = kept.latency;
  route.tier = kept.tier;
  for (const FoldedNetwork::Entry& entry : entries) {
    route.resources.push_back(entry.number);
    if (!kept.load.empty()) route.load.push_back(kept.load[entry.at]);
  }
}

}  // namespace stageline
