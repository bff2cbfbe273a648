#include "tools/planner/corrections.hpp"

#include <algorithm>

namespace stageline::planner {

template <class Key>
double Corrections::factor_of(const std::map<Key, Above>& all, const Key& key) {
  const auto found = all.find(key);
  return found == all.end() ? 1 : found->second.factor();
}

bool Corrections::Above::learn(double ratio) {
  const double before = factor();
  least = known == 0 ? ratio : std::min(least, ratio);
  ++known;
  return factor() != before;
}

bool Corrections::learn_search(const Kind& kind, const Ground& ground, double ratio) {
  return searched_[kind].learn(ratio / factor_of(fixed_, ground));
}

double Corrections::factor(const Kind& kind, const Ground& ground) const {
  return factor_of(searched_, kind) * factor_of(fixed_, ground);
}

}  // namespace stageline::planner
