// Reads the name of a weight rule.
#include "tools/inputs/weight_rule.hpp"

#include "sim/base/names.hpp"

namespace stageline {

WeightRule parse_weight_rule(const std::string& text, const std::string& what) {
  return one_of(all_weight_rules, text, what);
}

}  // namespace stageline
