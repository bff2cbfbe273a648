// Grouped interleaving (schedulers/parts/grouped_order.hpp) as a start of searches over loops:
// groups of every size up to the number of devices. For stage k on device k mod devices.
#pragma once

#include <vector>

#include "schedulers/parts/grouped_order.hpp"
#include "schedulers/search/cyclic_round.hpp"
#include "schedulers/search/order_search.hpp"

namespace stageline {

/// The shortest of the groups' orders that keep the limit; and of the shortest, with W elsewhere.
void try_grouped(OrderSearch& search, const Problem& problem);

/// The rounds of the groups' orders, of as many micro-batches as a group, where a step has as many.
std::vector<CyclicRound> grouped_rounds(const Problem& problem);

}  // namespace stageline
