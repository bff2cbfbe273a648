// Plans collectives: the shape of their groups, the links that each algorithm loads, the best one.
#include "cost_models/network/collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_map>

#include "cost_models/network/dispatch.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"
#include "sim/bus_bandwidth.hpp"
#include "sim/transport.hpp"

namespace stageline {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr std::string_view best_algorithm = "best";
constexpr int most_in_searched_ring = 16;

// By pair of ranks, the bytes a second of the link that joins them; 0: none does.
using RingLinks = std::vector<std::vector<std::int64_t>>;

// A ring through all ranks over links of at least that rate: depth first, lower ranks first, so
// that the result is the same everywhere. Empty: there is none, or it was not found in so many
// steps.
class RingSearch {
 public:
  RingSearch(const RingLinks& links, std::int64_t rate) : links_(links), rate_(rate) {}

  std::vector<int> found() {
    ring_ = {0};
    passed_.assign(links_.size(), false);
    passed_[0] = true;
    return grow() ? ring_ : std::vector<int>{};
  }

 private:
  bool joins(int a, int b) const {
    const std::int64_t link = nth(nth(links_, a), b);
    return link > 0 && link >= rate_;
  }

  bool grow() {
    if (++steps_ > most_steps) return false;
    if (ring_.size() == links_.size()) return joins(ring_.back(), ring_.front());
    for (int next = 1; next < std::ssize(links_); ++next) {
      if (passed_[as_size(next)] || !joins(ring_.back(), next)) continue;
      passed_[as_size(next)] = true;
      ring_.push_back(next);
      if (grow()) return true;
      ring_.pop_back();
      passed_[as_size(next)] = false;
    }
    return false;
  }

  static constexpr int most_steps = 100'000;
  const RingLinks& links_;
  std::int64_t rate_;
  std::vector<int> ring_;
  std::vector<bool> passed_;
  int steps_ = 0;
};

// The ring whose narrowest link is the widest, of at least that rate; empty: there is none.
std::vector<int> widest_ring(const RingLinks& links, std::int64_t least) {
  std::set<std::int64_t, std::greater<>> rates;
  for (const std::vector<std::int64_t>& row : links) {
    for (const std::int64_t rate : row) {
      if (rate > 0 && rate >= least) rates.insert(rate);
    }
  }
  for (const std::int64_t rate : rates) {
    if (std::vector<int> ring = RingSearch(links, rate).found(); !ring.empty()) return ring;
  }
  return {};
}

// "gpu0, gpu1, … of 8 ranks"
std::string ranks_text(const Cluster& cluster, const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < 3; ++i) {
    text += (i == 0 ? "" : ", ") + nth(cluster.devices, ranks[i]).name;
  }
  return ranks.size() > 3 ? fmt::format("{}, … ({} ranks)", text, ranks.size()) : text;
}

void check_groups(const Cluster& cluster, const std::vector<std::vector<int>>& groups) {
  for (const std::vector<int>& group : groups) {
    if (group.empty()) throw UsageError("a group of a collective has no ranks");
    if (group.size() != groups.front().size()) {
      throw UsageError(fmt::format(
          "groups of one collective are equally large, but one has {} ranks ({}) and another {} "
          "({})",
          groups.front().size(), ranks_text(cluster, groups.front()), group.size(),
          ranks_text(cluster, group)));
    }
    std::vector<int> sorted = group;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      throw UsageError(fmt::format("{} is twice in one group of a collective ({})",
                                   nth(cluster.devices, *twice).name, ranks_text(cluster, group)));
    }
  }
}

Bandwidth rounded(double rate) {
  if (rate >= static_cast<double>(std::numeric_limits<std::int64_t>::max())) {
    return Bandwidth::unlimited();
  }
  return Bandwidth{std::max<std::int64_t>(1, std::llround(rate))};
}

void check_algorithm(const std::string& algorithm) {
  const std::vector<std::string> names = collective_algorithms();
  if (std::find(names.begin(), names.end(), algorithm) != names.end()) return;
  throw UsageError(fmt::format("there is no algorithm of collectives \"{}\"{}; there are {}",
                               algorithm, did_you_mean(algorithm, names), fmt::join(names, ", ")));
}

double rate_of(const CollectivePace& pace, double links) {
  return std::min(links * pace.efficiency, pace.most);
}

double seconds_of(const CollectivePace& pace, double links, Bytes bytes) {
  const double rate = rate_of(pace, links);
  return to_seconds(pace.setup) + (rate == unbounded ? 0 : static_cast<double>(bytes.count) / rate);
}

// By tier: the share of a link's stated rate that large collectives reach.
std::array<double, tiers> shares_reached(const GroupShape& shape, CollectiveKind kind) {
  std::array<double, tiers> shares{1, 1, 1, 1};
  if (!shape.known()) return shares;
  nth(shares, Tier::network) = reached_of_nic;
  const double rate = nvlink_ring_rate(*shape.chip, kind, shape.largest());
  if (rate > 0) nth(shares, Tier::nvlink) = std::min(rate / shape.chip->nvlink, 1.0);
  return shares;
}

// By device: equal where two may be of one domain, since a machine or links of NVLink join them.
// All are where some device has no machine.
std::vector<int> reach_of_devices(const Cluster& cluster) {
  const std::size_t devices = cluster.devices.size();
  const bool housed = std::all_of(cluster.devices.begin(), cluster.devices.end(),
                                  [](const Device& device) { return device.host >= 0; });
  if (!housed) return std::vector<int>(devices);
  std::vector<int> group(devices + cluster.hosts.size() + cluster.switches.size());
  std::iota(group.begin(), group.end(), 0);
  const auto find = [&](int node) {
    while (nth(group, node) != node) node = nth(group, node) = nth(group, nth(group, node));
    return node;
  };
  for (std::size_t d = 0; d < devices; ++d) {
    const int host = static_cast<int>(devices) + cluster.devices[d].host;
    nth(group, find(static_cast<int>(d))) = find(host);
  }
  for (const Link& link : cluster.links) {
    if (link.tier == Tier::nvlink) nth(group, find(link.from)) = find(link.to);
  }
  std::vector<int> joined(devices);
  for (std::size_t d = 0; d < devices; ++d) joined[d] = find(static_cast<int>(d));
  return joined;
}

}  // namespace

std::vector<std::string> collective_algorithms() {
  std::vector<std::string> names;
  for (const Algorithm* const one : algorithms()) names.emplace_back(one->name);
  names.emplace_back(best_algorithm);
  return names;
}

AlgorithmNames parse_algorithms(const std::string& text) {
  AlgorithmNames algorithms;
  if (text.find('=') == std::string::npos) {
    check_algorithm(text);
    algorithms.fill(text);
    return algorithms;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      throw UsageError(
          fmt::format("--collectives {}: \"{}\" names no group; write GROUP=ALGORITHM[,…], such as "
                      "tp=nvls,dp=ring, or one algorithm for all",
                      text, part));
    }
    const Dimension dimension =
        one_of(all_dimensions, part.substr(0, equals), "a group of --collectives");
    std::string& named = nth(algorithms, dimension);
    if (!named.empty()) {
      throw UsageError(fmt::format("--collectives {} names {} twice", text, name(dimension)));
    }
    named = part.substr(equals + 1);
    check_algorithm(named);
    at = end + 1;
  }
  for (std::string& one : algorithms) {
    if (one.empty()) one = best_algorithm;
  }
  return algorithms;
}

Collectives::Collectives(const Cluster& cluster, Routes& routes, const std::string& algorithms)
    : cluster_(cluster), routes_(routes), algorithms_(parse_algorithms(algorithms)) {
  // Resources are numbered as Routes says: two for each link, one where it is half-duplex.
  for (const Link& link : cluster.links) {
    const bool half = link.duplex == Duplex::half;
    const int first = static_cast<int>(tier_.size());
    tier_.insert(tier_.end(), half ? 1 : 2, link.tier);
    transport_.insert(transport_.end(), half ? 1 : 2, link.transport);
    opposite_.push_back(half ? first : first + 1);
    if (!half) opposite_.push_back(first);
    if (std::max(link.from, link.to) < std::ssize(cluster.devices)) {
      joined_.insert(std::minmax(link.from, link.to));
    }
  }
  reach_ = reach_of_devices(cluster);
}

CollectivePlan Collectives::plan(const Collective& collective) {
  // Those that were prepared were checked.
  if (prepared_.count({collective.groups, collective.beside, collective.routing}) == 0) {
    check_groups(cluster_, collective.groups);
  }
  if (collective.groups.empty() || collective.groups.front().size() == 1) return {no_algorithm, {}};
  Prepared& found = prepared(collective.groups, collective.beside, collective.routing);
  const bool by_dispatcher = !collective.routing.dispatcher.empty();
  Candidate best = by_dispatcher         ? dispatched(collective, found)
                   : collective.messages ? in_messages(collective, found)
                                         : chosen(collective, found);
  double rate = rate_of(best.pace, best.use->rate);
  Time setup = best.pace.setup;
  const bool as_measured = !by_dispatcher && !collective.messages;
  const auto* const first = as_measured ? measured(collective.kind, found) : nullptr;
  PricingEntry entry;
  if (first != nullptr) {
    entry = measured_entry(cluster_, *first, collective.bytes);
    const MeasuredPace own = measured_pace(cluster_, entry, collective.bytes);
    setup = from_seconds(own.setup);
    rate = own.rate > 0 ? own.rate : unbounded;
    // It was measured of one group.
    Prepared& alone = prepared({found.ranks.front()}, {}, {});
    const Use& one = use(*best.algorithm, collective, alone);
    if (best.use->rate < one.rate) rate *= best.use->rate / one.rate;
  } else if (best.pace.measured()) {
    entry = {PricedBy::table, -1, std::string(best.pace.source)};
  } else if (found.shape().known()) {
    entry.by = by_dispatcher ? PricedBy::dispatcher : PricedBy::nccl;
  }
  CollectivePlan plan{collective.messages ? ring_of_messages : best.algorithm->name,
                      {setup, collective.bytes, {}, {}},
                      std::move(entry)};
  Route& route = plan.costs.route;
  route = best.use->route;
  route.bandwidth = rounded(rate);
  // So that the rate is what the fullest link allows.
  if (rate < unbounded && best.use->rate < unbounded) {
    for (double& load : route.load) load *= best.use->rate / rate;
  }
  return plan;
}

Collectives::Candidate Collectives::dispatched(const Collective& collective, Prepared& found) {
  const std::string& word = collective.routing.dispatcher;
  const Algorithm& own = dispatch_algorithm(word);
  const std::string& asked = nth(algorithms_, collective.dimension);
  if (asked != best_algorithm) {
    throw UsageError(fmt::format(
        "the model sends tokens to their experts by {}, and --collectives names {} for {}; name "
        "algorithms of the other groups alone, or leave dispatch={} out",
        word, asked, name(collective.dimension), word));
  }
  for (const GroupShape& shape : found.shapes) {
    if (own.handles(collective.kind, shape)) continue;
    throw UsageError(fmt::format("{} cannot do {} among {}: {}", word, name(collective.kind),
                                 ranks_text(cluster_, found.ranks.front()), own.summary));
  }
  return candidate(own, collective, found);
}

// Messages between neighbours of one ring, at the rate of NCCL's rings (assumed): nobody divides
// them among the links that other ranks have across a boundary.
Collectives::Candidate Collectives::in_messages(const Collective& collective, Prepared& found) {
  const auto all = algorithms();
  const auto ring =
      std::find_if(all.begin(), all.end(), [](const auto* one) { return one->name == "ring"; });
  return candidate(**ring, collective, found);
}

Collectives::Candidate Collectives::chosen(const Collective& collective, Prepared& found) {
  std::optional<Candidate> best;
  std::optional<UsageError> refused;
  const std::string& asked = nth(algorithms_, collective.dimension);
  const auto handles = [&](const Algorithm& one) {
    return std::all_of(found.shapes.begin(), found.shapes.end(), [&](const GroupShape& shape) {
      return one.handles(collective.kind, shape);
    });
  };
  for (const Algorithm* const one : algorithms()) {
    const bool named = one->name == asked;
    if (!named && asked != best_algorithm) continue;
    if (!handles(*one)) {
      if (!named) continue;
      std::vector<std::string_view> able;
      for (const Algorithm* const other : algorithms()) {
        if (handles(*other)) able.push_back(other->name);
      }
      throw UsageError(fmt::format(
          "the algorithm {} cannot do {} among {} ({}); {} can: give --collectives {}={}, or "
          "leave it to best",
          one->name, name(collective.kind), ranks_text(cluster_, found.ranks.front()), one->summary,
          fmt::join(able, ", "), name(collective.dimension), able.front()));
    }
    try {
      const Candidate next = candidate(*one, collective, found);
      const bool first = !best || (next.pace.measured() && !best->pace.measured());
      const bool alike = best && next.pace.measured() == best->pace.measured();
      if (first || (alike && next.seconds < best->seconds)) {
        best = next;
      }
    } catch (const UsageError& error) {
      if (!refused) refused = error;  // another algorithm may do without that route
    }
  }
  if (!best && refused) throw *refused;
  if (!best) {
    throw UsageError(fmt::format("no algorithm does {} among {}", name(collective.kind),
                                 ranks_text(cluster_, found.ranks.front())));
  }
  return *best;
}

Collectives::Candidate Collectives::candidate(const Algorithm& algorithm,
                                              const Collective& collective, Prepared& found) {
  Candidate best{&algorithm, &use(algorithm, collective, found), {}, unbounded};
  for (const CollectivePace& pace :
       algorithm.paces(collective.kind, collective.bytes, found.shape())) {
    const double seconds = seconds_of(pace, best.use->rate, collective.bytes);
    if (!(seconds < best.seconds)) continue;
    best.pace = pace;
    best.seconds = seconds;
  }
  return best;
}

const Collectives::Use& Collectives::use(const Algorithm& algorithm, const Collective& collective,
                                         Prepared& found) {
  const Beside beside = found.beside.empty() ? Beside{} : beside_of(algorithm, collective, found);
  const std::tuple key(algorithm.name, collective.kind,
                       beside.other == nullptr ? no_algorithm : beside.other->name);
  const auto known = found.uses.find(key);
  if (known != found.uses.end()) return known->second;
  return found.uses.emplace(key, use_of(algorithm, collective.kind, found, beside)).first->second;
}

// The groups beside whose shape the algorithm cannot do, such as those that cross machines where
// the others do not, run the one that is best for them.
Collectives::Beside Collectives::beside_of(const Algorithm& algorithm, const Collective& collective,
                                           const Prepared& found) {
  Beside beside;
  const Prepared& all = prepared(found.beside, {}, found.routing);
  Collective others{collective.kind, collective.bytes, {}, collective.dimension};
  for (std::size_t group = 0; group < all.ranks.size(); ++group) {
    const bool able = algorithm.handles(collective.kind, nth(all.shapes, all.shape_of[group]));
    (able ? beside.same : others.groups).push_back(all.ranks[group]);
  }
  if (others.groups.empty()) return beside;
  beside.other = chosen(others, prepared(others.groups, {}, {})).algorithm;
  beside.others = std::move(others.groups);
  return beside;
}

// By resource, of a byte of all groups.
std::vector<double> Collectives::loads_of(const Algorithm& algorithm, CollectiveKind kind,
                                          const Prepared& found, Tier& tier) {
  std::vector<double> load(routes_.names().size());
  std::vector<int> passed;
  const auto add = [&](int from, int to, double share) {
    passed.clear();
    routes_.append_resources(from, to, passed);
    for (const int resource : passed) {
      tier = std::max(tier, nth(tier_, resource));
      if (nth(transport_, resource) != Transport::host) {
        nth(load, resource) += share;
        continue;
      }
      // Staged in the host's memory, which takes both directions of a link.
      const int other = nth(opposite_, resource);
      nth(load, resource) += share / share_through_host;
      if (other != resource) nth(load, other) += share / share_through_host;
    }
  };
  for (std::size_t shape = 0; shape < found.shapes.size(); ++shape) {
    for (const RankTransfer& one : algorithm.transfers(kind, found.shapes[shape])) {
      for (std::size_t group = 0; group < found.ranks.size(); ++group) {
        if (as_size(found.shape_of[group]) != shape) continue;
        const std::vector<int>& ranks = found.ranks[group];
        add(nth(ranks, one.from), nth(ranks, one.to), one.share);
      }
    }
  }
  return load;
}

Collectives::Use Collectives::use_of(const Algorithm& algorithm, CollectiveKind kind,
                                     const Prepared& found, const Beside& beside) {
  Use use;
  std::vector<double> load = loads_of(algorithm, kind, found, use.route.tier);
  const auto add = [&](const Algorithm& other, const Groups& groups) {
    Tier any{};
    const std::vector<double> more =
        loads_of(other, kind, prepared(groups, {}, found.routing), any);
    for (std::size_t i = 0; i < load.size(); ++i) load[i] += load[i] > 0 ? more[i] : 0;
  };
  if (!beside.same.empty()) add(algorithm, beside.same);
  if (beside.other != nullptr) add(*beside.other, beside.others);
  use.rate = unbounded;
  const bool own = algorithm.reached != nullptr && found.shape().known();
  const std::array<double, tiers> reached =
      own ? algorithm.reached(found.shape()) : shares_reached(found.shape(), kind);
  for (std::size_t i = 0; i < load.size(); ++i) {
    if (load[i] <= 0) continue;
    const int resource = static_cast<int>(i);
    const bool limited = !routes_.capacity()[i].is_unlimited();
    // What a link over TCP carries is what NCCL reaches there.
    const bool all = !limited || nth(transport_, resource) == Transport::tcp;
    const double share = load[i] / (all ? 1 : nth(reached, nth(tier_, resource)));
    use.route.resources.push_back(resource);
    use.route.load.push_back(share);
    const Bandwidth capacity = routes_.capacity()[i];
    if (capacity.is_unlimited()) continue;
    use.rate = std::min(use.rate, static_cast<double>(capacity.bytes_per_second) / share);
  }
  use.route.bandwidth = rounded(use.rate);
  return use;
}

Collectives::Prepared& Collectives::prepared(const Groups& groups, const Groups& beside,
                                             const TokenRouting& routing) {
  const auto known = prepared_.find({groups, beside, routing});
  if (known != prepared_.end()) return known->second;
  Prepared found;
  found.beside = beside;
  found.routing = routing;
  std::vector<std::vector<int>> sorted = groups;
  std::sort(sorted.begin(), sorted.end());
  for (const std::vector<int>& group : sorted) add_group(group, found);
  const GroupShape links = links_of(found);
  for (GroupShape& shape : found.shapes) {
    std::vector<int> domains = std::move(shape.domains);
    shape = links;
    shape.domains = std::move(domains);
    shape.routing = routing;
  }
  const auto most = std::max_element(
      found.shapes.begin(), found.shapes.end(),
      [](const GroupShape& one, const GroupShape& other) { return one.count() < other.count(); });
  const int first = static_cast<int>(most - found.shapes.begin());
  std::iter_swap(found.shapes.begin(), most);
  for (int& shape : found.shape_of) shape = shape == 0 ? first : shape == first ? 0 : shape;
  const auto widest = std::find(found.shape_of.begin(), found.shape_of.end(), 0);
  std::set<int> machines;
  for (const int rank : nth(found.ranks, widest - found.shape_of.begin())) {
    machines.insert(nth(cluster_.devices, rank).host);
  }
  found.machines =
      machines.count(-1) > 0 ? found.shape().count() : static_cast<int>(machines.size());
  return prepared_.emplace(std::tuple(groups, beside, routing), std::move(found)).first->second;
}

void Collectives::add_group(const std::vector<int>& group, Prepared& found) {
  GroupShape shape;
  shape.domains.clear();
  std::vector<int> ranks;
  for (const std::vector<int>& domain : domains_of(group)) {
    shape.domains.push_back(static_cast<int>(domain.size()));
    ranks.insert(ranks.end(), domain.begin(), domain.end());
  }
  if (shape.count() == 1) ranks = in_ring_order(std::move(ranks));
  const auto alike =
      std::find_if(found.shapes.begin(), found.shapes.end(),
                   [&](const GroupShape& other) { return other.domains == shape.domains; });
  found.shape_of.push_back(static_cast<int>(alike - found.shapes.begin()));
  if (alike == found.shapes.end()) found.shapes.push_back(std::move(shape));
  found.ranks.push_back(std::move(ranks));
}

// The ranks in the order of a ring of direct links, the widest one, where links join devices and
// such a ring is no narrower than the routes between neighbours as the ranks are numbered.
std::vector<int> Collectives::in_ring_order(std::vector<int> ranks) {
  const int count = static_cast<int>(ranks.size());
  if (joined_.empty() || count < 4 || count > most_in_searched_ring) return ranks;
  RingLinks links(as_size(count), std::vector<std::int64_t>(as_size(count)));
  std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
  bool direct = true;
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      const std::pair<int, int> pair = std::minmax(nth(ranks, a), nth(ranks, b));
      const bool neighbours = b == a + 1 || (a == 0 && b == count - 1);
      const bool linked = joined_.count(pair) > 0;
      if (!linked && !neighbours) continue;
      try {
        const Route& route = routes_.between(pair.first, pair.second);
        const std::int64_t rate = route.bandwidth.bytes_per_second;
        const bool alone = linked && route.resources.size() == 1;
        if (alone) nth(nth(links, a), b) = nth(nth(links, b), a) = rate;
        if (neighbours) narrowest = std::min(narrowest, rate);
        if (neighbours && !alone) direct = false;
      } catch (const UsageError&) {
        return ranks;  // no route: the algorithms that need one refuse
      }
    }
  }
  if (direct) return ranks;
  const std::vector<int> ring = widest_ring(links, narrowest);
  if (ring.empty()) return ranks;
  std::vector<int> ordered;
  for (const int at : ring) ordered.push_back(nth(ranks, at));
  return ordered;
}

std::vector<std::vector<int>> Collectives::domains_of(const std::vector<int>& group) {
  std::vector<std::vector<int>> domains;
  std::unordered_map<int, std::vector<int>> near;  // domains, by what their devices can share
  for (const int rank : group) {
    std::vector<int>& candidates = near[nth(reach_, rank)];
    const auto joined = std::find_if(candidates.begin(), candidates.end(), [&](int domain) {
      return same_domain(cluster_, routes_, nth(domains, domain).front(), rank);
    });
    if (joined != candidates.end()) {
      nth(domains, *joined).push_back(rank);
      continue;
    }
    candidates.push_back(static_cast<int>(domains.size()));
    domains.push_back({rank});
  }
  return domains;
}

bool same_domain(const Cluster& cluster, Routes& routes, int one, int other) {
  const int host = nth(cluster.devices, one).host;
  const int other_host = nth(cluster.devices, other).host;
  if (host >= 0 && host == other_host) return true;
  try {
    const Tier tier = routes.between(one, other).tier;
    if (tier == Tier::other) return host == other_host;
    return tier == Tier::nvlink || (tier == Tier::pcie && (host < 0 || other_host < 0));
  } catch (const UsageError&) {
    return false;  // no route: the algorithms that need one refuse
  }
}

// The chip, the kinds of links, their rate and the latencies of the slowest routes, between
// neighbours of the rings and those of rails, whichever there are.
GroupShape Collectives::links_of(const Prepared& found) {
  GroupShape links;
  links.chip = chip_of_all(found.ranks);
  const auto add = [&](int from, int to, bool inside) {
    try {
      const Route& route = routes_.between(from, to);
      Tier& tier = inside ? links.inside : links.across;
      Time& latency = inside ? links.inside_latency : links.across_latency;
      tier = std::max(tier, route.tier);
      latency = std::max(latency, route.latency);
      if (!inside || route.bandwidth.is_unlimited()) return;
      const auto rate = static_cast<double>(route.bandwidth.bytes_per_second);
      if (links.inside_rate == 0 || rate < links.inside_rate) links.inside_rate = rate;
    } catch (const UsageError&) {
      return;  // no route: the algorithms that need one refuse
    }
  };
  for (std::size_t group = 0; group < found.ranks.size(); ++group) {
    const std::vector<int>& ranks = found.ranks[group];
    const GroupShape& shape = nth(found.shapes, found.shape_of[group]);
    int first = 0;
    for (const int size : shape.domains) {
      for (const RankTransfer& one : ring_transfers(first, size, 1)) {
        add(nth(ranks, one.from), nth(ranks, one.to), true);
      }
      first += size;
      if (shape.count() == 1) continue;
      const int next = nth(ranks, first == shape.ranks() ? 0 : first);
      add(nth(ranks, first - 1), next, false);
      add(nth(ranks, first - size), next, false);
    }
  }
  return links;
}

// The slowest one; null where some device is none that is known.
const Chip* Collectives::chip_of_all(const std::vector<std::vector<int>>& groups) const {
  const auto speed = [](const Chip& chip) { return std::pair(chip.generation, chip.nvlink); };
  const Chip* all = nullptr;
  for (const std::vector<int>& group : groups) {
    for (const int rank : group) {
      const int kind = nth(cluster_.devices, rank).kind;
      const Chip* const chip = kind < 0 ? nullptr : chip_of(nth(cluster_.kinds, kind).name);
      if (chip == nullptr) return nullptr;
      if (all == nullptr || speed(*chip) < speed(*all)) all = chip;
    }
  }
  return all;
}

const MeasuredCollective* Collectives::measured(CollectiveKind kind, const Prepared& found) const {
  const int ranks = found.shape().ranks();
  const auto& all = cluster_.collectives;
  const auto own = std::find_if(all.begin(), all.end(), [&](const auto& one) {
    return one.kind == kind && one.ranks == ranks && one.machines == found.machines;
  });
  return own == all.end() ? nullptr : &*own;
}

}  // namespace stageline
