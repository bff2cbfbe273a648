// List schedules that searches for the best order begin with.
#pragma once

#include <array>
#include <utility>

#include "schedulers/parts/priorities.hpp"
#include "schedulers/search/order_search.hpp"

namespace stageline {

/// ListRules::fill and even_idle: W in any gap, in gaps that fit it, or so that all devices idle
/// alike.
inline std::array<std::pair<int, bool>, 5> fills() {
  return {{{0, false}, {100, false}, {50, true}, {50, false}, {100, true}}};
}

/// Backward first, by the critical path, and as `list` does by its third priority.
void try_list_rules(OrderSearch& search, const Problem& problem);

/// The same with as many micro-batches in flight on each stage as one pace through the pipeline
/// takes. For several stages a device.
void try_in_flight(OrderSearch& search, const Problem& problem);

}  // namespace stageline
