// The contiguous cut of the topological order whose slowest stage is fastest, and among all such
// cuts the one that moves the fewest bytes. Every contiguous cut of a topological order has convex
// stages, so nothing needs checking. A stage's time is its forward + backward on its devices, at
// their rates by class: replicas take turns, so it is the time between two of its micro-batches.
// Where a stage has its backward on another device, its time is the larger of the two.
//
// Where the routes between neighbouring stages are not all of one bandwidth, they count, too: a
// boundary takes as long as the bytes that cross it one way take on its route, no boundary may take
// longer than the slowest stage, and instead of the fewest bytes the shortest transfers win. Equal
// routes do not: then bytes say it all but the scale.
//
// Two exact steps over L layers and S stages; stage s = layers [i, j) takes time(s, i, j).
//  1. The smallest limit under which S non-empty stages cover the layers, by bisection. For one
//     limit, the set of ends that s stages can reach grows from that of s - 1 in O(L). Where all
//     stages are alike, filling each to the limit decides it in O(L) for all of them.
//  2. Shortest path over (stage, end) within that limit. A tensor is counted once a stage that
//     reads it and does not make it, so what stage [i, j) receives depends on i and j alone:
//     received(i, j) = Σ output[u], u < i, u read in [i, j). The sum over stages is exact on any
//     graph. Stage s can only begin between the first layer from which the stages s to S - 1 reach
//     the end and the last one that the stages before it reach. The smaller the limit, the nearer
//     are these: equal layers leave S places or fewer, so this takes O(L + S³). A layer that is
//     longer than a stage need be leaves up to L: O(L² S), and what is too much is refused.
// Equal bytes: the most even cut (least sum of squares of stage times, each rounded to 2^-20 of the
// limit); equal still: the larger stages first.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "schedulers/partition/boundaries.hpp"
#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::balanced_partitioner {
namespace {

// Layers with their summed times, the stages' devices, and what lies between them.
struct BalancedChain {
  std::vector<ClassTimes> forward;    // of layers 0..i-1; L + 1 entries
  std::vector<ClassTimes> backward;   // the same
  std::vector<StageSpeed> speeds;     // all different
  std::vector<std::size_t> speed_of;  // by stage, index into speeds
  Boundaries boundaries;

  std::size_t layers() const { return forward.size() - 1; }
  std::size_t stages() const { return speed_of.size(); }
  std::int64_t time(const StageSpeed& speed, std::size_t begin, std::size_t end) const {
    return stage_time(between(forward, begin, end), between(backward, begin, end), speed).count();
  }
  static ClassTimes between(const std::vector<ClassTimes>& sum, std::size_t begin,
                            std::size_t end) {
    return {sum[end].all - sum[begin].all, sum[end].memory - sum[begin].memory};
  }
};

BalancedChain chain_of(const PartitionRequest& request) {
  BalancedChain chain;
  chain.forward.emplace_back();
  chain.backward.emplace_back();
  for (const Layer& layer : request.model.layers) {
    ClassTimes forward = chain.forward.back();
    ClassTimes backward = chain.backward.back();
    chain.forward.push_back(forward += forward_times(layer));
    chain.backward.push_back(backward += backward_times(layer));
  }
  for (int stage = 0; stage < request.stages; ++stage) {
    const StageSpeed speed = speed_of_stage(request, stage);
    const auto found = std::find(chain.speeds.begin(), chain.speeds.end(), speed);
    chain.speed_of.push_back(as_size(found - chain.speeds.begin()));
    if (found == chain.speeds.end()) chain.speeds.push_back(speed);
  }
  chain.boundaries = boundaries_of(request);
  return chain;
}

// By first layer i, the farthest end j of a stage [i, j) that keeps the limit; i when not even one
// layer does. Ascending.
std::vector<std::size_t> farthest_ends(const BalancedChain& chain, const StageSpeed& speed,
                                       std::int64_t limit) {
  std::vector<std::size_t> ends(chain.layers());
  std::size_t end = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    end = std::max(end, i);
    while (end < chain.layers() && chain.time(speed, i, end + 1) <= limit) ++end;
    ends[i] = end;
  }
  return ends;
}

// The same for every speed.
std::vector<std::vector<std::size_t>> all_ends(const BalancedChain& chain, std::int64_t limit) {
  std::vector<std::vector<std::size_t>> ends;
  for (const StageSpeed& speed : chain.speeds) ends.push_back(farthest_ends(chain, speed, limit));
  return ends;
}

// Filling each stage is right where all are alike: farther is better.
bool filled(const BalancedChain& chain, std::int64_t limit) {
  const std::vector<std::size_t> ends = farthest_ends(chain, chain.speeds.front(), limit);
  std::size_t at = 0;
  for (std::size_t stage = 0; stage < chain.stages(); ++stage) {
    const std::size_t end = std::min(ends[at], chain.layers() - (chain.stages() - stage - 1));
    if (end == at) return false;
    at = end;
  }
  return at == chain.layers();
}

bool feasible(const BalancedChain& chain, std::int64_t limit) {
  if (chain.speeds.size() == 1 && !chain.boundaries.weigh()) return filled(chain, limit);
  const std::size_t layers = chain.layers();
  std::vector<char> reached(layers + 1);  // ends of the stages so far
  std::vector<char> next(layers + 1);
  const std::vector<std::vector<std::size_t>> ends_at = all_ends(chain, limit);
  reached[0] = 1;
  for (std::size_t stage = 0; stage < chain.stages(); ++stage) {
    const std::vector<std::size_t>& ends = ends_at[chain.speed_of[stage]];
    std::fill(next.begin(), next.end(), char{0});
    std::size_t covered = 0;  // all ends up to here that can be marked are
    for (std::size_t i = stage; i < layers; ++i) {
      if (reached[i] == 0) continue;
      for (std::size_t j = std::max(covered, i) + 1; j <= ends[i]; ++j) next[j] = 1;
      covered = std::max(covered, ends[i]);
    }
    if (stage + 1 < chain.stages()) chain.boundaries.forbid(stage + 1, limit, next);
    reached.swap(next);
  }
  return reached[layers] != 0;
}

std::int64_t least_limit(const BalancedChain& chain) {
  double rates = 0;
  constexpr double largest = std::numeric_limits<double>::max();
  StageSpeed slowest{{Rates{largest, largest}}, false};
  bool apart = false;
  for (const std::size_t index : chain.speed_of) {
    double most = 0;  // whatever the class
    for (const Rates rate : chain.speeds[index].rates) {
      most = std::max({most, rate.matrix, rate.memory});
      slowest.rates[0].matrix = std::min(slowest.rates[0].matrix, rate.matrix);
      slowest.rates[0].memory = std::min(slowest.rates[0].memory, rate.memory);
    }
    rates += most;
    apart = apart || chain.speeds[index].apart;
  }
  const std::int64_t all = chain.forward.back().all.count() + chain.backward.back().all.count();
  // Always feasible.
  std::int64_t high = chain.time(slowest, 0, chain.layers());
  high = std::max(high, chain.boundaries.longest());
  // No stage can be faster than the mean; the slack covers what rounding can take off it. Not so
  // where a stage's F and B go on side by side.
  const double mean = static_cast<double>(all) / rates * (apart ? 0.5 : 1);
  std::int64_t low = std::max<std::int64_t>(0, static_cast<std::int64_t>(mean * 0.999'999) - 1);
  low = std::min(low, high);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (feasible(chain, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

// In-edges by reader, as received() needs them.
struct Reads {
  struct Read {
    std::size_t from;      // the layer that makes the tensor
    std::size_t previous;  // 1 + the last layer before this one that reads it too; 0: none
    std::int64_t bytes;
  };
  std::vector<std::vector<Read>> of;  // by reading layer
};

Reads reads_of(const Model& model) {
  Reads reads;
  reads.of.resize(model.layers.size());
  std::vector<std::size_t> latest(model.layers.size());  // by maker, 1 + its last reader so far
  std::vector<LayerEdge> edges = edges_of(model);        // sorted by (from, to)
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  for (const LayerEdge& edge : edges) {
    const auto from = as_size(edge.from);
    const auto to = as_size(edge.to);
    reads.of[to].push_back({from, latest[from], model.layers[from].output.count});
    latest[from] = to + 1;
  }
  return reads;
}

// row[j] = bytes that a stage [begin, j) receives, for j up to `end`.
void fill_received(const Reads& reads, std::size_t begin, std::size_t end,
                   std::vector<std::int64_t>& row) {
  std::int64_t sum = 0;
  for (std::size_t j = begin; j < end; ++j) {
    for (const Reads::Read& read : reads.of[j]) {
      if (read.from < begin && read.previous <= begin) sum += read.bytes;
    }
    row[j + 1] = sum;
  }
}

// Best way to end a stage at a layer, so far.
struct Best {
  std::int64_t moves = std::numeric_limits<std::int64_t>::max();  // bytes, or ps; none came here
  std::int64_t unevenness = 0;
  std::size_t begin = 0;  // of the stage that ends here
};

// Where each stage can begin, and the last one end: all that cuts within the limit can use.
struct Places {
  std::vector<std::size_t> first;  // by stage; S + 1 entries
  std::vector<std::size_t> last;

  bool have(std::size_t stage, std::size_t begin) const {
    return first[stage] <= begin && begin <= last[stage];
  }
  // The ends of stage s that begins there and reaches up to `reach`.
  std::size_t first_end(std::size_t s, std::size_t begin) const {
    return std::max(begin + 1, first[s + 1]);
  }
  std::size_t last_end(std::size_t s, std::size_t reach) const {
    return std::min(reach, last[s + 1]);
  }
};

using Ends = std::vector<std::vector<std::size_t>>;  // all_ends()

Places places_of(const BalancedChain& chain, const Ends& ends) {
  const std::size_t layers = chain.layers();
  const std::size_t stages = chain.stages();
  Places places{std::vector<std::size_t>(stages + 1), std::vector<std::size_t>(stages + 1)};
  places.first[stages] = places.last[stages] = layers;
  for (std::size_t s = 1; s < stages; ++s) {
    const std::size_t reach = ends[chain.speed_of[s - 1]][places.last[s - 1]];
    places.last[s] = std::min(reach, layers - (stages - s));
  }
  for (std::size_t s = stages; s-- > 1;) {
    const std::vector<std::size_t>& reach = ends[chain.speed_of[s]];
    const auto enough = std::lower_bound(reach.begin(), reach.end(), places.first[s + 1]);
    places.first[s] = std::max(s, as_size(enough - reach.begin()));
  }
  return places;
}

// Refuses what would take too long: the steps of cheapest_cuts() are counted first.
void check_work(const BalancedChain& chain, const Ends& ends, const Places& places) {
  constexpr std::size_t most = 2'000'000'000;
  std::size_t steps = 0;
  for (std::size_t s = 0; s < chain.stages(); ++s) {
    const std::vector<std::size_t>& reach = ends[chain.speed_of[s]];
    for (std::size_t i = places.first[s]; i <= places.last[s]; ++i) {
      const std::size_t end = places.last_end(s, reach[i]);
      steps += end - std::min(end, places.first_end(s, i)) + 1;
    }
    if (steps <= most) continue;
    throw UsageError(fmt::format(
        "partition \"balanced\": {} layers in {} stages leave more than {} equally fast stages to "
        "choose from by their bytes; give --partition uniform, or layer ranges like 0-5,6-11,12-",
        chain.layers(), chain.stages(), most));
  }
}

std::vector<int> cheapest_cuts(const BalancedChain& chain, const Model& model, std::int64_t limit) {
  const std::size_t layers = chain.layers();
  const std::size_t stages = chain.stages();
  const Reads reads = reads_of(model);
  const double scale = limit == 0 ? 0 : 1'048'576.0 / static_cast<double>(limit);
  const Ends ends = all_ends(chain, limit);
  const Places places = places_of(chain, ends);
  check_work(chain, ends, places);
  // best[s][j - first[s]]: s stages cover the layers before j. All ways to j come from smaller
  // begins, so one pass over begins is enough, and what a stage receives is computed once a begin.
  std::vector<std::vector<Best>> best(stages + 1);
  for (std::size_t s = 0; s <= stages; ++s) {
    best[s].resize(places.last[s] - std::min(places.last[s], places.first[s]) + 1);
  }
  best[0][0].moves = 0;
  std::vector<std::int64_t> received(layers + 1);
  std::vector<std::vector<std::int64_t>> square(ends.size(), received);  // by speed
  std::size_t oldest = 0;  // stage that can begin here or farther on
  for (std::size_t i = 0; i < layers; ++i) {
    while (oldest < stages && places.last[oldest] < i) ++oldest;
    std::size_t widest = i;
    std::vector<std::size_t> from(ends.size(),
                                  layers + 1);  // by speed, the ends that are asked for
    std::vector<std::size_t> to(ends.size(), i);
    for (std::size_t s = oldest; s < stages && places.have(s, i); ++s) {
      const std::size_t rate = chain.speed_of[s];
      from[rate] = std::min(from[rate], places.first_end(s, i));
      to[rate] = std::max(to[rate], places.last_end(s, ends[rate][i]));
      widest = std::max(widest, to[rate]);
    }
    for (std::size_t rate = 0; rate < ends.size(); ++rate) {
      for (std::size_t j = from[rate]; j <= to[rate]; ++j) {
        const auto time = static_cast<double>(chain.time(chain.speeds[rate], i, j));
        const auto part = static_cast<std::int64_t>(time * scale);
        square[rate][j] = part * part;
      }
    }
    fill_received(reads, i, widest, received);
    for (std::size_t s = oldest; s < stages && places.have(s, i); ++s) {
      const std::size_t rate = chain.speed_of[s];
      const Best& here = best[s][i - places.first[s]];
      if (here.moves == std::numeric_limits<std::int64_t>::max()) continue;
      if (s > 0 && chain.boundaries.time(s, i) > limit) continue;
      const std::size_t last = places.last_end(s, ends[rate][i]);
      for (std::size_t j = places.first_end(s, i); j <= last; ++j) {
        Best& next = best[s + 1][j - places.first[s + 1]];
        const std::int64_t moves = here.moves + chain.boundaries.weight(s, received[j]);
        if (moves > next.moves) continue;
        const std::int64_t unevenness = here.unevenness + square[rate][j];
        if (moves < next.moves || unevenness <= next.unevenness) next = {moves, unevenness, i};
      }
    }
  }
  std::vector<int> last_layers;
  std::size_t end = layers;
  for (std::size_t s = stages; s > 1; --s) {
    end = best[s][end - places.first[s]].begin;
    last_layers.push_back(static_cast<int>(end) - 1);
  }
  std::reverse(last_layers.begin(), last_layers.end());
  return last_layers;
}

PartitionPlan plan(const PartitionRequest& request) {
  check_stages(request);
  const BalancedChain chain = chain_of(request);
  PartitionPlan plan =
      plan_from_cuts(request, cheapest_cuts(chain, request.model, least_limit(chain)), "");
  plan.reason = balance_of(request, plan.partition);
  return plan;
}

}  // namespace

extern const Partitioner entry = {
    "balanced", "the slowest stage as fast as can be, then the fewest bytes between stages",
    "bisection and dynamic programming, exact", "", plan};

}  // namespace stageline::balanced_partitioner
