// What a step costs: joules by a model of busy and idle power, and US dollars by the hour.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"

namespace stageline {

/// The energy of a step in the steady state, all devices together. Empty where a device's kind does
/// not state what it needs.
struct StepEnergy {
  /// Σ devices busy · busy power + idle · idle power. Busy is the time of the device's ops, with
  /// the collectives inside; hosts, switches and cooling are not counted.
  std::optional<double> joules;
  std::optional<double> dollars;  // Σ devices price an hour · step
  double samples = 0;             // of a step; 0: the trace does not say how many a micro-batch has
  double tokens = 0;              // of a step; 0: the trace counts none
};

/// `price_per_hour`: US dollars for a device; empty: that of its kind. `outcome` is that of
/// `asked`.
StepEnergy step_energy(const Case& asked, const Outcome& outcome,
                       std::optional<double> price_per_hour = std::nullopt);

/// `price_per_hour` for all devices of the run, or what their kinds cost; empty where a kind states
/// no price.
std::optional<double> hourly_price(const Case& asked, std::optional<double> price_per_hour);

/// Why joules, or dollars, of the case are unknown, with what to state; empty where they are known.
std::string why_no_energy(const Case& asked);
std::string why_no_price(const Case& asked, std::optional<double> price_per_hour);

/// The figures behind, by kind of device, with their sources, one sentence each.
std::vector<std::string> power_notes(const Case& asked);
std::vector<std::string> price_notes(const Case& asked, std::optional<double> price_per_hour);

}  // namespace stageline
