// What a search drops, in words: for those who ask why a candidate is not in the front.
#include <fmt/core.h>

#include "sim/base/index.hpp"
#include "tools/planner/search.hpp"

namespace stageline::planner {

void Search::drop(const Node& node, std::int64_t candidates) {
  if (!request_.keep_dropped) return;
  const Shape& shape = nth(shapes_, node.shape);
  const ShapeLoads loads = grounds_.of(shape).loads;
  ShapeBound bound;
  std::string flags;
  if (node.is_shape()) {
    bound = loads.shape();
    flags = flags_of(request_.setting, shape);
  } else {
    const Family& family = nth(set_of(node.shape).families, node.family);
    bound =
        loads.family(family.spec, family.recomputation, family.offloading, nth(limit_, node.shape));
    flags =
        flags_of(request_.setting, {shape, family.spec, family.recomputation, family.offloading});
  }
  std::string why = bound.why;
  if (cannot_fit(node)) {
    why = fmt::format("needs at least {} of {} on {}", print(node.memory),
                      print(*nth(limit_, node.shape)), bound.where);
  } else if (bound.fitting > bound.step) {
    why = fmt::format("its stashes fit in {} a device where a step takes {}, and no sooner",
                      print(*nth(limit_, node.shape)), print(bound.fitting));
  } else if (node.memory > Bytes{}) {
    why += fmt::format("; at least {}: the front has no worse", print(node.memory));
  }
  dropped_.push_back({std::move(flags), std::move(why), node.step, candidates});
}

}  // namespace stageline::planner
