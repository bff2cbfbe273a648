// The order of unequal devices along the pipeline.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/study/case.hpp"

namespace stageline::planner {

/// Orders that are simulated at most: all of six devices without two that are alike.
inline constexpr int most_orders = 720;

/// The same machines and links, the devices numbered otherwise: `order` has, by new number, the
/// device's old one. Names stay with their devices.
Cluster in_order(const Cluster& cluster, const std::vector<int>& order);

/// By device, its class, numbered in the order of their first devices: two devices are of one class
/// where exchanging them leaves the cluster as it is, but for names.
std::vector<int> device_classes(const Cluster& cluster);

/// What an order permutes, each as its devices: with degrees the machines, where there are several
/// of equally many devices, one behind the other; else each device by itself.
struct OrderedUnits {
  std::vector<std::vector<int>> devices;
  bool machines = false;
};
OrderedUnits ordered_units(const Case& asked);

/// By unit, its class, as device_classes(). Two machines are of one class where their devices,
/// their own switches, their hosts and the links of all these are alike.
std::vector<int> unit_classes(const Cluster& cluster, const OrderedUnits& units);

/// The order of the case's units with the fastest step, each order cut and simulated by study():
/// all distinct orders where they are at most `most`; else from the best of the given one and those
/// sorted by rate and by memory on, the exchange of two units that gains most, until none does or
/// `most` orders are simulated. An order that fits into memory goes before one that does not, so
/// the result is never worse than the given order, and is that one among equals.
DeviceOrder search_device_order(const Case& asked, int most = most_orders);

/// The case with its devices in the order that the search found; with degrees, its ranks are made
/// of the devices in that order. Throws UsageError for a given program, which says itself which
/// device does what.
Case with_searched_order(Case asked, int most = most_orders);

/// The better of two such cases, whose devices stand on racks in these ways: `one` among equals.
Case better_placed(Case one, const std::string& one_placement, Case other,
                   const std::string& other_placement);

}  // namespace stageline::planner
