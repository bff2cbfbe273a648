// Progressive filling, one component of flows and resources at a time.
#include "sim/fair/max_min.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace stageline {
namespace {

constexpr double tolerance =
    1e-12;  // levels and rates that differ by no more of themselves are equal

bool is_above(double level, double other) { return level > other * (1 + tolerance); }

bool differ(double rate, double other) { return is_above(rate, other) || is_above(other, rate); }

}  // namespace

MaxMin::MaxMin(std::vector<double> capacity) : resources_(capacity.size()) {
  for (std::size_t r = 0; r < capacity.size(); ++r) {
    assert(capacity[r] > 0);
    resources_[r].capacity = capacity[r];
  }
}

MaxMin::Flow MaxMin::add(std::uint32_t rank, std::span<const ResourceLoad> loads, double bound,
                         double weight) {
  assert(bound > 0 && weight > 0);
  Flow flow = 0;
  if (free_.empty()) {
    flow = static_cast<Flow>(flows_.size());
    flows_.emplace_back();
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  State& state = flows_[flow];
  state.loads = loads;
  state.bound = bound;
  state.weight = weight;
  state.rate = 0;
  state.rank = rank;
  state.at_bound = false;
  state.place.resize(loads.size());
  for (std::uint32_t i = 0; i < loads.size(); ++i) {
    assert(loads[i].share > 0);
    std::vector<User>& users = resources_[loads[i].resource].users;
    state.place[i] = static_cast<std::uint32_t>(users.size());
    users.push_back({flow, i});
    mark(loads[i].resource);
  }
  if (loads.empty()) unloaded_.push_back(flow);
  return flow;
}

void MaxMin::remove(Flow flow) {
  State& state = flows_[flow];
  for (std::size_t i = 0; i < state.loads.size(); ++i) {
    std::vector<User>& users = resources_[state.loads[i].resource].users;
    const User last = users.back();
    users[state.place[i]] = last;
    flows_[last.flow].place[last.load] = state.place[i];
    users.pop_back();
    mark(state.loads[i].resource);
  }
  std::erase(unloaded_, flow);
  free_.push_back(flow);
}

void MaxMin::mark(std::uint32_t resource) {
  if (resources_[resource].changed) return;
  resources_[resource].changed = true;
  changed_.push_back(resource);
}

const std::vector<MaxMin::Flow>& MaxMin::update() {
  ++updates_;
  moved_.clear();
  for (const Flow flow : unloaded_) set(flow, flows_[flow].bound, true);
  unloaded_.clear();
  for (const std::uint32_t resource : changed_) {
    resources_[resource].changed = false;
    if (resources_[resource].seen == updates_ || resources_[resource].users.empty()) continue;
    reach(resource);
    if (flows_here_.size() == 1) {
      fill_one();
    } else {
      fill();
    }
  }
  changed_.clear();
  sort_by_rank(moved_);
  return moved_;
}

void MaxMin::sort_by_rank(std::vector<Flow>& flows) {
  if (flows.size() < 2) return;
  keys_.clear();
  for (const Flow flow : flows) keys_.push_back(std::uint64_t{flows_[flow].rank} << 32 | flow);
  std::sort(keys_.begin(), keys_.end());
  for (std::size_t i = 0; i < flows.size(); ++i) flows[i] = static_cast<Flow>(keys_[i]);
}

// The component of the resource: its flows and resources.
void MaxMin::reach(std::uint32_t resource) {
  flows_here_.clear();
  here_.assign(1, resource);
  resources_[resource].seen = updates_;
  for (std::size_t next = 0; next < here_.size(); ++next) {
    for (const User user : resources_[here_[next]].users) {
      State& state = flows_[user.flow];
      if (state.seen == updates_) continue;
      state.seen = updates_;
      flows_here_.push_back(user.flow);
      for (const ResourceLoad& load : state.loads) {
        if (resources_[load.resource].seen == updates_) continue;
        resources_[load.resource].seen = updates_;
        here_.push_back(load.resource);
      }
    }
  }
}

void MaxMin::fill_one() {
  const State& state = flows_[flows_here_.front()];
  double least = MaxMin::unbounded;
  for (const ResourceLoad& load : state.loads) {
    least = std::min(least, resources_[load.resource].capacity / (load.share * state.weight));
  }
  const bool at_bound = !is_above(state.bound / state.weight, least);
  set(flows_here_.front(), at_bound ? state.bound : least * state.weight, at_bound);
}

void MaxMin::fill() {
  sort_by_rank(flows_here_);
  open_resources();
  bounded_here_.clear();
  for (const Flow flow : flows_here_) {
    if (flows_[flow].bound < unbounded) bounded_here_.push_back(flow);
  }
  const auto bound_level = [&](Flow flow) { return flows_[flow].bound / flows_[flow].weight; };
  std::stable_sort(bounded_here_.begin(), bounded_here_.end(),
                   [&](Flow a, Flow b) { return bound_level(a) < bound_level(b); });
  bounded_ = 0;
  while (true) {
    const double lowest = lowest_level();
    if (here_.empty()) return;
    if (fix_bounded(lowest)) continue;
    for (const std::uint32_t resource : here_) {
      const Resource& next = resources_[resource];
      if (next.open > 0 && !is_above(next.level, lowest)) fill_through(resource);
    }
  }
}

// Gives the flows whose bounds are not above that level their bounds, which only raises levels.
bool MaxMin::fix_bounded(double level) {
  bool any = false;
  for (; bounded_ < bounded_here_.size(); ++bounded_) {
    const State& state = flows_[bounded_here_[bounded_]];
    if (state.fixed) continue;
    const double own = state.bound / state.weight;
    if (is_above(own, level)) break;
    fix(bounded_here_[bounded_], state.bound, true, own);
    any = true;
  }
  return any;
}

void MaxMin::open_resources() {
  std::sort(here_.begin(), here_.end());
  for (const std::uint32_t r : here_) {
    Resource& resource = resources_[r];
    resource.left = resource.capacity;
    resource.weight = 0;
    resource.open = 0;
  }
  for (const Flow flow : flows_here_) {
    State& state = flows_[flow];
    state.fixed = false;
    for (const ResourceLoad& load : state.loads) {
      resources_[load.resource].weight += load.share * state.weight;
      ++resources_[load.resource].open;
    }
  }
  for (const std::uint32_t r : here_) {
    resources_[r].level = resources_[r].left / resources_[r].weight;
  }
}

// The lowest level among the resources that still have flows without a rate; forgets the others.
double MaxMin::lowest_level() {
  double lowest = unbounded;
  std::size_t kept = 0;
  for (const std::uint32_t r : here_) {
    if (resources_[r].open == 0) continue;
    here_[kept++] = r;
    lowest = std::min(lowest, resources_[r].level);
  }
  here_.resize(kept);
  return lowest;
}

void MaxMin::fill_through(std::uint32_t resource) {
  const double level = resources_[resource].level;
  through_.clear();
  for (const User user : resources_[resource].users) {
    if (!flows_[user.flow].fixed) through_.push_back(user.flow);
  }
  sort_by_rank(through_);
  for (const Flow flow : through_) fix(flow, level * flows_[flow].weight, false, level);
}

// Levels only rise as flows get their rates, whatever the rounding.
void MaxMin::fix(Flow flow, double rate, bool at_bound, double level) {
  State& state = flows_[flow];
  state.fixed = true;
  for (const ResourceLoad& load : state.loads) {
    Resource& resource = resources_[load.resource];
    --resource.open;
    resource.left = std::max(0.0, resource.left - load.share * rate);
    if (resource.open == 0) continue;
    const double before = resource.weight;
    resource.weight -= load.share * state.weight;
    if (resource.weight < 1e-3 * before) weigh(resource);
    resource.level = std::max(level, resource.left / resource.weight);
  }
  set(flow, rate, at_bound);
}

// The difference of almost equal sums says little.
void MaxMin::weigh(Resource& resource) {
  resource.weight = 0;
  for (const User user : resource.users) {
    const State& state = flows_[user.flow];
    if (!state.fixed) resource.weight += state.loads[user.load].share * state.weight;
  }
}

void MaxMin::set(Flow flow, double rate, bool at_bound) {
  State& state = flows_[flow];
  if (!differ(rate, state.rate)) return;
  state.rate = rate;
  state.at_bound = at_bound;
  moved_.push_back(flow);
}

}  // namespace stageline
