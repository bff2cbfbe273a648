// Links that all flows of a run load alike: one stands for all.
//
//   m0.gpu0 ── rail0    of replica 0     both carry a part of every message from rank 0 to rank 1,
//   m1.gpu0 ── rail0    of replica 1     and of the same reductions: one resource with one's load
//
// So what is stored of alike replicas does not grow with their number. Times stay the same: links
// that all flows cross with the same load limit them alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/network/rank_routes.hpp"
#include "sim/base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/routes.hpp"

namespace stageline {

/// By resource, the first one of the same capacity that the routes between ranks load alike.
std::vector<int> first_alike(const RouteUses& uses, const std::vector<Bandwidth>& capacity);

/// The network of ranks, and their reductions, over one resource of each kind. Resources are of one
/// kind where the routes between ranks load them alike, and each reduction does.
struct FoldedNetwork {
  // One of a reduction's route.
  struct Entry {
    std::size_t at = 0;  // in the route as it was planned
    int number = 0;      // of its resource in `network`
  };
  Network network;
  std::shared_ptr<FoundRoutes> scattered;      // as network.found, where messages are scattered
  std::vector<std::vector<Entry>> reductions;  // one entry of each kind, in their order
};

/// What is known of resources: by resource.
struct ResourceFacts {
  const std::vector<std::string>& names;
  const std::vector<Bandwidth>& capacity;
};

/// `network` and `scattered` have the numbers of `numbers`, which are those of first_alike();
/// reductions are over the resources of `facts`.
FoldedNetwork folded(const Network& network, const std::shared_ptr<FoundRoutes>& scattered,
                     const ResourceNumbers& numbers, const std::vector<const Route*>& reductions,
                     const ResourceFacts& facts);

/// A number that is the same of reductions for which folded() gives the same: those over the same
/// resources, with equal loads on the same ones.
std::uint64_t pattern_of(const std::vector<const Route*>& reductions);

/// The route with these entries alone.
void keep_entries(Route& route, const std::vector<FoldedNetwork::Entry>& entries);

/// Mixes the bits of a number, so that sums of such numbers are equal by accident alone (Steele,
/// Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15U;
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31U);
}

}  // namespace stageline
