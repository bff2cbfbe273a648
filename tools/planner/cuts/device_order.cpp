#include "tools/planner/cuts/device_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "sim/rates.hpp"
#include "tools/study/study.hpp"

namespace stageline::planner {
namespace {

// A link as one of its ends sees it: the other end, bandwidth, latency away and back.
using WireSeen = std::tuple<int, Bandwidth, Time, Time, Duplex, Tier, Transport>;

std::vector<std::vector<WireSeen>> wires_seen(const Cluster& cluster) {
  std::vector<std::vector<WireSeen>> seen(cluster.devices.size());
  const auto add = [&](int at, int other, const Link& link, Time away, Time back) {
    if (as_size(at) >= seen.size()) return;
    nth(seen, at).emplace_back(other, link.bandwidth, away, back, link.duplex, link.tier,
                               link.transport);
  };
  for (const Link& link : cluster.links) {
    add(link.from, link.to, link, link.latency, link.back());
    add(link.to, link.from, link, link.back(), link.latency);
  }
  return seen;
}

// With the neighbour `other` under a number that no node has.
std::vector<WireSeen> seen_beside(std::vector<WireSeen> seen, int other) {
  for (WireSeen& wire : seen) {
    if (std::get<0>(wire) == other) std::get<0>(wire) = -1;
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

Device without_name(Device device) {
  device.name.clear();
  return device;
}

// n! / Π (devices of a class)!
double distinct_orders(const std::vector<int>& classes) {
  double orders = 1;
  std::vector<int> so_far;
  for (std::size_t d = 0; d < classes.size(); ++d) {
    so_far.resize(std::max(so_far.size(), as_size(classes[d]) + 1));
    orders *= static_cast<double>(d + 1) / ++nth(so_far, classes[d]);
  }
  return std::min(std::round(orders), 1e300);  // more are not counted
}

// Units by position, for the classes by position: those of a class in their given order.
std::vector<int> order_of(const std::vector<int>& by_position, const std::vector<int>& classes) {
  std::vector<std::vector<int>> waiting(classes.size());  // by class, the last first
  for (std::size_t u = classes.size(); u-- > 0;) {
    nth(waiting, classes[u]).push_back(static_cast<int>(u));
  }
  std::vector<int> order;
  for (const int one : by_position) {
    order.push_back(nth(waiting, one).back());
    nth(waiting, one).pop_back();
  }
  return order;
}

struct TriedOrder {
  bool runs = false;
  bool fits = false;
  Time step{};

  bool better_than(const TriedOrder& other) const {
    return std::tuple(!runs, !fits, step) < std::tuple(!other.runs, !other.fits, other.step);
  }
};

const Cluster& given_devices(const Case& asked) {
  return asked.ranked ? asked.ranked->devices() : asked.cluster;
}

Case case_in_order(Case asked, const std::vector<int>& order) {
  if (asked.ranked) {
    asked.ranked = asked.ranked->on(in_order(asked.ranked->devices(), order));
    asked.cluster = asked.ranked->ranks();
  } else {
    asked.cluster = in_order(asked.cluster, order);
  }
  return asked;
}

// A machine as its devices, its host and its own switches see it: numbers that do not depend on
// which machine it is.
struct MachineSeen {
  std::vector<Device> devices;
  std::optional<Bytes> host_memory;
  bool relays = true;
  // From, to, bandwidth, latency there and back, duplex, tier, transport; nodes of its own below 0.
  std::vector<std::tuple<int, int, Bandwidth, Time, Time, Duplex, Tier, Transport>> links;
  friend bool operator==(const MachineSeen&, const MachineSeen&) = default;
};

// By switch, the machine whose devices alone have links to it; -1: several, or none.
std::vector<int> owners_of_switches(const Cluster& cluster) {
  constexpr int nobody = -1;
  constexpr int several = -2;
  const int first = static_cast<int>(cluster.devices.size() + cluster.hosts.size());
  std::vector<int> owner(cluster.switches.size(), nobody);
  const auto see = [&](int node, int neighbour) {
    if (node < first || as_size(neighbour) >= cluster.devices.size()) return;
    int& known = nth(owner, node - first);
    const int host = nth(cluster.devices, neighbour).host;
    known = known == nobody || known == host ? host : several;
  };
  for (const Link& link : cluster.links) {
    see(link.from, link.to);
    see(link.to, link.from);
  }
  for (int& one : owner) one = std::max(one, nobody);
  return owner;
}

MachineSeen machine_seen(const Cluster& cluster, const std::vector<int>& devices,
                         const std::vector<int>& owners) {
  const int host = nth(cluster.devices, devices.front()).host;
  const int hosts = static_cast<int>(cluster.devices.size());
  const int switches = hosts + static_cast<int>(cluster.hosts.size());
  MachineSeen seen;
  std::map<int, int> own;  // by node, from -1 downwards
  const auto add = [&](int node) { own.emplace(node, -1 - static_cast<int>(own.size())); };
  for (const int device : devices) {
    seen.devices.push_back(without_name(nth(cluster.devices, device)));
    seen.devices.back().host = 0;
    add(device);
  }
  add(hosts + host);
  for (std::size_t s = 0; s < owners.size(); ++s) {
    if (owners[s] == host) add(switches + static_cast<int>(s));
  }
  seen.host_memory = nth(cluster.hosts, host).memory;
  seen.relays = nth(cluster.hosts, host).relays;
  const auto number = [&](int node) {
    const auto found = own.find(node);
    return found == own.end() ? node : found->second;
  };
  for (const Link& link : cluster.links) {
    const int from = number(link.from);
    const int to = number(link.to);
    if (from >= 0 && to >= 0) continue;
    seen.links.emplace_back(from, to, link.bandwidth, link.latency, link.back(), link.duplex,
                            link.tier, link.transport);
  }
  std::sort(seen.links.begin(), seen.links.end());
  return seen;
}

// Orders are lists of classes by position.
class OrderSearch {
 public:
  OrderSearch(const Case& asked, int most)
      : asked_(asked),
        cluster_(given_devices(asked)),
        units_(ordered_units(asked)),
        classes_(unit_classes(cluster_, units_)),
        most_(most) {
    best_ = classes_;
    given_ = best_tried_ = tried(classes_);
  }

  DeviceOrder run() {
    const double orders = distinct_orders(classes_);
    if (orders <= most_) {
      std::vector<int> order = classes_;
      std::sort(order.begin(), order.end());
      do {
        take(order);
      } while (std::next_permutation(order.begin(), order.end()));
    } else {
      take_sorted();
      climb();
    }
    DeviceOrder found;
    found.order = devices_in(best_);
    found.machines = units_.machines;
    for (const int unit : order_of(best_, classes_)) {
      const Device& device = nth(cluster_.devices, nth(units_.devices, unit).front());
      found.names.push_back(found.machines ? nth(cluster_.hosts, device.host).name : device.name);
    }
    if (given_.runs) found.given = given_.step;
    found.given_fits = given_.fits;
    found.found = best_tried_.step;
    found.runs = best_tried_.runs;
    found.fits = best_tried_.fits;
    found.orders = orders;
    found.simulated = static_cast<int>(known_.size());
    return found;
  }

 private:
  const TriedOrder& tried(const std::vector<int>& order) {
    const auto [found, is_new] = known_.emplace(order, TriedOrder{});
    if (!is_new) return found->second;
    try {
      const Outcome outcome = study(case_in_order(asked_, devices_in(order)));
      found->second = {true, outcome.fit != Fit::no, outcome.step_time};
    } catch (const UsageError&) {  // cannot run so, as below
    } catch (const ProgramError&) {
    } catch (const Deadlock&) {
    }
    return found->second;
  }

  std::vector<int> devices_in(const std::vector<int>& classes) const {
    std::vector<int> devices;
    for (const int unit : order_of(classes, classes_)) {
      const std::vector<int>& members = nth(units_.devices, unit);
      devices.insert(devices.end(), members.begin(), members.end());
    }
    return devices;
  }

  bool may_try(const std::vector<int>& order) const {
    return static_cast<int>(known_.size()) < most_ || known_.contains(order);
  }

  // Whether the order is the best so far.
  bool take(const std::vector<int>& order) {
    if (!may_try(order)) return false;
    const TriedOrder& here = tried(order);
    if (!here.better_than(best_tried_)) return false;
    best_ = order;
    best_tried_ = here;
    return true;
  }

  // The fastest first, the slowest first, the largest memory first: the first stages of most
  // schedules hold the most.
  void take_sorted() {
    std::vector<int> units(classes_.size());
    std::iota(units.begin(), units.end(), 0);
    const auto rate = [&](int unit) {
      double least = std::numeric_limits<double>::infinity();
      for (const int device : nth(units_.devices, unit)) {
        const Rates rates = rates_of(nth(cluster_.devices, device));
        least = std::min(least, rates.matrix + rates.memory);
      }
      return least;
    };
    const auto memory = [&](int unit) {
      Bytes least = most_bytes_held;
      for (const int device : nth(units_.devices, unit)) {
        least = std::min(least, nth(cluster_.devices, device).memory.value_or(most_bytes_held));
      }
      return least;
    };
    const auto take_by = [&](const auto& before) {
      std::vector<int> sorted = units;
      std::stable_sort(sorted.begin(), sorted.end(), before);
      for (int& unit : sorted) unit = nth(classes_, unit);
      take(sorted);
    };
    take_by([&](int a, int b) { return rate(a) > rate(b); });
    take_by([&](int a, int b) { return rate(a) < rate(b); });
    take_by([&](int a, int b) { return memory(a) > memory(b); });
  }

  void climb() {
    bool gained = true;
    while (gained) {
      gained = false;
      const std::vector<int> from = best_;
      for (std::size_t i = 0; i < from.size(); ++i) {
        for (std::size_t j = i + 1; j < from.size(); ++j) {
          if (from[i] == from[j]) continue;
          std::vector<int> order = from;
          std::swap(order[i], order[j]);
          gained = take(order) || gained;
        }
      }
    }
  }

  const Case& asked_;
  const Cluster& cluster_;  // the devices to order
  OrderedUnits units_;
  std::vector<int> classes_;  // by unit: the given order
  int most_;
  std::map<std::vector<int>, TriedOrder> known_;
  TriedOrder given_;
  std::vector<int> best_;
  TriedOrder best_tried_;
};

}  // namespace

Cluster in_order(const Cluster& cluster, const std::vector<int>& order) {
  Cluster result = cluster;
  std::vector<int> number(order.size());  // by old number
  for (std::size_t d = 0; d < order.size(); ++d) {
    result.devices[d] = nth(cluster.devices, order[d]);
    nth(number, order[d]) = static_cast<int>(d);
  }
  for (Link& link : result.links) {
    for (int* const end : {&link.from, &link.to}) {
      if (as_size(*end) < number.size()) *end = nth(number, *end);
    }
  }
  return result;
}

std::vector<int> device_classes(const Cluster& cluster) {
  const std::vector<std::vector<WireSeen>> seen = wires_seen(cluster);
  std::vector<int> classes;
  std::vector<std::size_t> first;  // device of each class
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    const auto alike = [&](std::size_t other) {
      return without_name(cluster.devices[d]) == without_name(cluster.devices[other]) &&
             seen_beside(seen[d], static_cast<int>(other)) ==
                 seen_beside(seen[other], static_cast<int>(d));
    };
    const auto known = std::find_if(first.begin(), first.end(), alike);
    classes.push_back(static_cast<int>(known - first.begin()));
    if (known == first.end()) first.push_back(d);
  }
  return classes;
}

OrderedUnits ordered_units(const Case& asked) {
  const std::vector<Device>& devices = given_devices(asked).devices;
  OrderedUnits machines{{}, true};
  OrderedUnits single;
  std::set<int> hosts;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const bool next = d == 0 || devices[d].host != devices[d - 1].host;
    if (next) machines.devices.emplace_back();
    machines.devices.back().push_back(static_cast<int>(d));
    single.devices.push_back({static_cast<int>(d)});
    hosts.insert(devices[d].host);
  }
  const std::size_t count = machines.devices.size();
  const bool equal = std::all_of(
      machines.devices.begin(), machines.devices.end(),
      [&](const std::vector<int>& one) { return one.size() * count == devices.size(); });
  const bool ordered = hosts.size() == count && !hosts.contains(-1);
  return asked.ranked && count > 1 && equal && ordered ? machines : single;
}

std::vector<int> unit_classes(const Cluster& cluster, const OrderedUnits& units) {
  if (!units.machines) return device_classes(cluster);
  const std::vector<int> owners = owners_of_switches(cluster);
  std::vector<MachineSeen> known;
  std::vector<int> classes;
  for (const std::vector<int>& unit : units.devices) {
    MachineSeen seen = machine_seen(cluster, unit, owners);
    const auto found = std::find(known.begin(), known.end(), seen);
    classes.push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(std::move(seen));
  }
  return classes;
}

DeviceOrder search_device_order(const Case& asked, int most) {
  return OrderSearch(asked, most).run();
}

Case with_searched_order(Case asked, int most) {
  if (asked.program) {
    throw UsageError(
        "--device-order search is for schedules: a given program says itself which device does "
        "what");
  }
  DeviceOrder found = search_device_order(asked, most);
  asked = case_in_order(std::move(asked), found.order);
  asked.device_order = std::move(found);
  return asked;
}

Case better_placed(Case one, const std::string& one_placement, Case other,
                   const std::string& other_placement) {
  const auto tried = [](const Case& asked) {
    const DeviceOrder& found = *asked.device_order;
    return TriedOrder{found.runs, found.fits, found.found};
  };
  const bool moves = tried(other).better_than(tried(one));
  Case& better = moves ? other : one;
  const DeviceOrder& left = *(moves ? one : other).device_order;
  better.device_order->placement = moves ? other_placement : one_placement;
  if (left.runs) better.device_order->elsewhere = left.found;
  better.device_order->elsewhere_fits = left.fits;
  return std::move(better);
}

}  // namespace stageline::planner
