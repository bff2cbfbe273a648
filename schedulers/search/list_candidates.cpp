#include "schedulers/search/list_candidates.hpp"

#include "schedulers/parts/in_flight.hpp"

namespace stageline {

void try_list_rules(OrderSearch& search, const Problem& problem) {
  ListRules rules;
  rules.rank = forward_first();
  search.try_rules(rules);
  const Rank ranks[] = {backward_first(), critical_path_first(problem, true)};
  for (const auto& [fill, even] : fills()) {
    rules.fill = fill;
    rules.even_idle = even;
    for (const Rank& rank : ranks) {
      rules.rank = rank;
      search.try_rules(rules);
    }
  }
}

void try_in_flight(OrderSearch& search, const Problem& problem) {
  ListRules rules;
  const Rank ranks[] = {backward_first(), critical_path_first(problem, true)};
  for (const std::vector<std::uint32_t>& counts : in_flight_counts(problem)) {
    rules.in_flight = counts;
    for (const auto& [fill, even] : {std::pair(0, false), std::pair(50, true)}) {
      rules.fill = fill;
      rules.even_idle = even;
      for (const Rank& rank : ranks) {
        rules.rank = rank;
        search.try_rules(rules);
      }
    }
  }
}

}  // namespace stageline
