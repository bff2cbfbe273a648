#include "tools/inputs/weight_rule.hpp"

#include <fmt/format.h>

#include <vector>

#include "sim/errors.hpp"

namespace stageline {

WeightRule parse_weight_rule(const std::string& text, const std::string& what) {
  std::vector<std::string> known;
  for (const WeightRule rule : {WeightRule::flush, WeightRule::stash, WeightRule::vertical_sync,
                                WeightRule::double_buffer, WeightRule::latest}) {
    if (name(rule) == text) return rule;
    known.emplace_back(name(rule));
  }
  throw UsageError(
      fmt::format("{} is one of flush, stash, vertical_sync, double_buffer, latest (not \"{}\"{})",
                  what, text, did_you_mean(text, known)));
}

}  // namespace stageline
