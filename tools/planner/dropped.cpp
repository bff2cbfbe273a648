// What a search drops, in words: for those who ask why a candidate is not in the front.
#include <fmt/core.h>

#include "sim/index.hpp"
#include "tools/planner/bounds.hpp"
#include "tools/planner/search.hpp"

namespace stageline {

PlanDropped Search::refused(Candidate any, const Family* family, const std::string& why) const {
  if (family != nullptr) {
    any.spec = family->spec;
    any.recomputation = family->recomputation;
    any.offloading = family->offloading;
  }
  return {flags_of(request_.setting, any), why, {}};
}

void Search::drop(const Node& node) {
  if (!request_.keep_dropped) return;
  const OpenShape& shape = nth(open_, node.shape);
  const Family& family = nth(shape.families, node.family);
  const Candidate any{shape.shape, family.spec, family.recomputation, family.offloading};
  const ShapeBound bound = bound_of_family(evaluator_.case_of(any));
  std::string why = bound.why;
  if (cannot_fit(node)) {
    why = fmt::format("needs at least {} of {} on {}", print(node.memory), print(*shape.limit),
                      bound.where);
  } else if (node.memory > Bytes{}) {
    why += fmt::format("; at least {}: the front has no worse", print(node.memory));
  }
  dropped_.push_back({flags_of(request_.setting, any), std::move(why), node.step});
}

}  // namespace stageline
