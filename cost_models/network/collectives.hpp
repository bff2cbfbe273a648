// How long a collective takes, and what it asks of each link.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/network/algorithm.hpp"
#include "cost_models/network/pricing_entry.hpp"
#include "sim/costs.hpp"
#include "sim/model.hpp"
#include "sim/routes.hpp"

namespace stageline {

/// A collective among devices. Its ranks are in the order of a ring.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{};  // of the full tensor a rank: what is reduced, gathered, scattered, sent or, of an
                  // all-to-all, what a rank sends
  /// Equal groups that do the same at the same time, such as the data-parallel groups of all
  /// tensor-parallel ranks: one flow, which loads the links of all of them.
  std::vector<std::vector<int>> groups;
  Dimension dimension = Dimension::data;  // of the groups, by which algorithms are named
  /// Groups of other replicas that do the same at the same time: they load links, and what they
  /// take is not asked. They run the same algorithm, those that it cannot do the best for them.
  std::vector<std::vector<int>> beside{};
  TokenRouting routing{};  // of an all-to-all; by a dispatcher, which is its algorithm
  bool messages = false;   // block by block to the next rank: a ring, whatever algorithms are named
};

/// The name of a ring of messages.
inline constexpr std::string_view ring_of_messages = "p2p";

/// The name of the algorithm for groups of one.
inline constexpr std::string_view no_algorithm = "none";

/// What one algorithm takes for a collective.
struct CollectivePlan {
  std::string_view algorithm;  // "ring"
  CollectiveCosts costs;
  PricingEntry entry{};  // of a group of one: none is asked
};

/// The algorithm of each dimension's collectives, in the order of all_dimensions: a name, or "best"
/// for the one that takes the least time.
using AlgorithmNames = std::array<std::string, all_dimensions.size()>;

/// "ring" for all collectives, or "tp=nvls,dp=ring" for those of some groups and the best for the
/// others. Throws UsageError where there is no such algorithm or group, or a group is named twice.
AlgorithmNames parse_algorithms(const std::string& text);

/// Whether two devices are in one machine, or in several that NVLink joins.
bool same_domain(const Cluster& cluster, Routes& routes, int one, int other);

/// The collectives of one cluster. Finds routes and constants once for each kind of group.
///
/// A byte of progress is a byte of Collective::bytes, so Route::load of a ring all-reduce is
/// 2(n−1)/n. Where the kinds of links are known and the devices are of chips() (the slowest of them
/// counts), links carry the share of their stated rate that was measured of them, and the load is
/// larger by as much; latencies are those of measured tables, or of NCCL's model. Elsewhere links
/// carry what the cluster states, and latencies are those of its routes. What was measured on the
/// cluster itself (Cluster::collectives) goes before all of that, for groups of as many ranks and
/// machines: of one group, and the slower the more of them share a link.
class Collectives {
 public:
  /// Refers to the cluster and the routes, which must outlive it. `algorithms`: as
  /// parse_algorithms() takes them, which also throws; the best one is that of the least time, as
  /// NCCL chooses (of algorithms with a measured table, where there is one).
  Collectives(const Cluster& cluster, Routes& routes, const std::string& algorithms = "best");

  /// A group of one takes no time. Throws UsageError where two ranks are not joined, groups are of
  /// different sizes or hold a device twice, or the named algorithm cannot do this collective.
  CollectivePlan plan(const Collective& collective);

 private:
  // The links that an algorithm uses for all groups, without the efficiency of its pace.
  struct Use {
    Route route;      // with its loads, and the bandwidth that they allow
    double rate = 0;  // the same, not rounded; infinite where no link has a limit
  };
  // The groups of one collective, in the order of their first devices.
  struct Prepared {
    std::vector<GroupShape> shapes;       // different ones, that of the most domains first
    int machines = 1;                     // that a group of the first shape is in
    std::vector<std::vector<int>> ranks;  // by group, in the order of GroupShape
    std::vector<int> shape_of;            // by group, an index into shapes
    std::vector<std::vector<int>> beside;
    TokenRouting routing;
    const GroupShape& shape() const { return shapes.front(); }
    // By the algorithm, and the one of the groups beside that cannot run it.
    std::map<std::tuple<std::string_view, CollectiveKind, std::string_view>, Use> uses;
  };
  struct Candidate {
    const Algorithm* algorithm = nullptr;
    const Use* use = nullptr;
    CollectivePace pace;
    double seconds = 0;
  };

  using Groups = std::vector<std::vector<int>>;
  // The groups beside by what they run.
  struct Beside {
    Groups same;                       // the algorithm of the collective
    Groups others;                     // `other`
    const Algorithm* other = nullptr;  // null: there are none
  };
  Prepared& prepared(const Groups& groups, const Groups& beside, const TokenRouting& routing);
  const Use& use(const Algorithm& algorithm, const Collective& collective, Prepared& found);
  Beside beside_of(const Algorithm& algorithm, const Collective& collective, const Prepared& found);
  void add_group(const std::vector<int>& group, Prepared& found);
  std::vector<std::vector<int>> domains_of(const std::vector<int>& group);
  std::vector<int> in_ring_order(std::vector<int> ranks);
  GroupShape links_of(const Prepared& found);
  const Chip* chip_of_all(const std::vector<std::vector<int>>& groups) const;
  Use use_of(const Algorithm& algorithm, CollectiveKind kind, const Prepared& found,
             const Beside& beside);
  std::vector<double> loads_of(const Algorithm& algorithm, CollectiveKind kind,
                               const Prepared& found, Tier& tier);
  Candidate candidate(const Algorithm& algorithm, const Collective& collective, Prepared& found);
  Candidate chosen(const Collective& collective, Prepared& found);
  Candidate in_messages(const Collective& collective, Prepared& found);
  Candidate dispatched(const Collective& collective, Prepared& found);
  const MeasuredCollective* measured(CollectiveKind kind, const Prepared& found) const;

  const Cluster& cluster_;
  Routes& routes_;
  AlgorithmNames algorithms_;
  std::vector<Tier> tier_;                // by resource
  std::vector<Transport> transport_;      // by resource
  std::vector<int> opposite_;             // by resource: the other direction of its link, or itself
  std::vector<int> reach_;                // by device: unequal of devices in different domains
  std::set<std::pair<int, int>> joined_;  // devices, lower number first, that a link joins
  // By groups, those beside them, and the routing of their tokens.
  std::map<std::tuple<Groups, Groups, TokenRouting>, Prepared> prepared_;
};

/// The algorithms' names and "best".
std::vector<std::string> collective_algorithms();

}  // namespace stageline
