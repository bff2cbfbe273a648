// What a profile will take, estimated before it begins.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include "sim/base/units.hpp"
#include "tools/executor/profile/profile.hpp"

namespace stageline::executor {

/// A device's speed, by one matrix product and one copy in memory.
struct QuickRates {
  double flops = 0;  // a second
  double bytes = 0;  // read and written, a second
};
/// In this thread, in about half a second. Throws as device_called() does.
QuickRates quick_rates(const std::string& device);

/// Rough: the layers are taken to reach a fixed share of what one large product does.
struct ExpectedCost {
  double step_seconds = 0;     // F, B and U of all layers
  double round_seconds = 0;    // of ProfileSession::round
  double warm_up_seconds = 0;  // of ProfileSession's constructor
  Bytes standing{};            // weights, gradients, optimizer state
  Bytes stash{};               // of one micro-batch, and its outputs
  int in_flight = 1;           // micro-batches of a profile

  Bytes session() const { return standing + stash * in_flight; }  // what a ProfileSession holds
};
/// By the roofline of the model's shape (cost_models/roofline.hpp) on a device of these rates.
ExpectedCost expected_cost(const ProfileRequest& request, const QuickRates& rates);

/// "about 3 min", "about 40 s"
std::string about(double seconds);

}  // namespace stageline::executor
