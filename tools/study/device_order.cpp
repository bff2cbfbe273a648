#include "tools/study/device_order.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/rates.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

// A link as one of its ends sees it: the other end, bandwidth, latency away and back.
using WireSeen = std::tuple<int, Bandwidth, Time, Time, Duplex, Tier>;

std::vector<std::vector<WireSeen>> wires_seen(const Cluster& cluster) {
  std::vector<std::vector<WireSeen>> seen(cluster.devices.size());
  const auto add = [&](int at, int other, const Link& link, Time away, Time back) {
    if (as_size(at) >= seen.size()) return;
    nth(seen, at).emplace_back(other, link.bandwidth, away, back, link.duplex, link.tier);
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

// Devices by position, for the classes by position: those of a class in their given order.
std::vector<int> order_of(const std::vector<int>& by_position, const std::vector<int>& classes) {
  std::vector<std::vector<int>> waiting(classes.size());  // by class, the last first
  for (std::size_t d = classes.size(); d-- > 0;) {
    nth(waiting, classes[d]).push_back(static_cast<int>(d));
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

// Orders are lists of classes by position.
class OrderSearch {
 public:
  OrderSearch(const Case& asked, int most)
      : asked_(asked), classes_(device_classes(asked.cluster)), most_(most) {
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
    found.order = order_of(best_, classes_);
    if (given_.runs) found.given = given_.step;
    found.given_fits = given_.fits;
    found.found = best_tried_.step;
    found.orders = orders;
    found.simulated = static_cast<int>(known_.size());
    return found;
  }

 private:
  const TriedOrder& tried(const std::vector<int>& order) {
    const auto [found, is_new] = known_.emplace(order, TriedOrder{});
    if (!is_new) return found->second;
    Case asked = asked_;
    asked.cluster = in_order(asked_.cluster, order_of(order, classes_));
    try {
      const Outcome outcome = study(asked);
      found->second = {true, outcome.fit != Fit::no, outcome.step_time};
    } catch (const UsageError&) {  // cannot run so, as below
    } catch (const ProgramError&) {
    } catch (const Deadlock&) {
    }
    return found->second;
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
    std::vector<int> devices(classes_.size());
    std::iota(devices.begin(), devices.end(), 0);
    const auto rate = [&](int device) {
      const Rates rates = rates_of(nth(asked_.cluster.devices, device));
      return rates.matrix + rates.memory;
    };
    const auto memory = [&](int device) {
      return nth(asked_.cluster.devices, device).memory.value_or(most_bytes_held);
    };
    const auto take_by = [&](const auto& before) {
      std::vector<int> sorted = devices;
      std::stable_sort(sorted.begin(), sorted.end(), before);
      for (int& device : sorted) device = nth(classes_, device);
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
  std::vector<int> classes_;  // by device: the given order
  int most_;
  std::map<std::vector<int>, TriedOrder> known_;
  TriedOrder given_;
  std::vector<int> best_;
  TriedOrder best_tried_;
};

}  // namespace

std::string_view name(DeviceOrdering ordering) {
  switch (ordering) {
    case DeviceOrdering::given:
      return "given";
    case DeviceOrdering::search:
      return "search";
  }
  return "";  // unreachable
}

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

DeviceOrder search_device_order(const Case& asked, int most) {
  return OrderSearch(asked, most).run();
}

Case with_searched_order(Case asked, int most) {
  if (asked.program) {
    throw UsageError(
        "--device-order search is for schedules: a given program says itself which device does "
        "what");
  }
  if (asked.ranked) {
    throw UsageError(
        "--device-order search is for a plain pipeline: with --tp, --cp, --ep, --dp or --zero "
        "beside it, --order says which ranks are on which devices");
  }
  DeviceOrder found = search_device_order(asked, most);
  asked.cluster = in_order(asked.cluster, found.order);
  asked.device_order = std::move(found);
  return asked;
}

}  // namespace stageline
