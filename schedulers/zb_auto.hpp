// zb_auto's search, for those who want to know how good its order is.
#pragma once

#include "schedulers/search/order_search.hpp"

namespace stageline {

/// An order, and what it is compared with. Times of what is to be short: the longest device span,
/// or the makespan, of compute alone.
struct SearchedOrder {
  StepLists lists;
  Time value{};
  Time bound{};                  // no order under the limit is shorter
  bool found_by_branch = false;  // by branch and bound; else by rules and local search
  bool bound_by_branch = false;  // else in closed form
  std::int64_t states = 0;       // looked at by branch and bound
};

/// The order of zb_auto for a problem with its knobs, and then, with `stop`, of branch and bound
/// and, where there is no memory for more of it, of local search, until the order is proved, `stop`
/// says so, or nothing has helped for long. Throws UsageError when
/// the limit is too small.
SearchedOrder search_order(const Problem& problem, const StashLimit& limit,
                           const BranchStop& stop = {});

}  // namespace stageline
