// The best order found of two chunks a device in a V: building blocks of every kind that the limit
// has room for, list schedules, and of the best of them, other places for single ops.
//
// After Qi et al. 2024, arXiv 2405.15362 (section 3: blocks; section 3.3: what fills their ends),
// and their scheduler's search over blocks, https://github.com/sail-sg/zero-bubble.
#pragma once

#include <string>
#include <vector>

#include "schedulers/search/order_search.hpp"

namespace stageline {

/// Tries the plans first, so that nothing that is as good takes their place, then what else is
/// known.
void search_v(OrderSearch& search, const Problem& problem, const StashLimit& limit,
              const std::vector<StepLists>& plans);

/// The same for a schedule with a plan of its own, the first: the order with the shortest longest
/// device span that holds no more stashes than the limit, and where stages are unequal, in bytes no
/// more on the fullest device than that plan.
StepLists best_v_order(const Problem& problem, const std::string& schedule, const StashLimit& limit,
                       const std::vector<StepLists>& plans);

}  // namespace stageline
