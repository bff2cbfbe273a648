#include "tools/planner/bounds.hpp"

#include "tools/planner/shape_loads.hpp"

namespace stageline::planner {

ShapeBound bound_of_shape(const Case& asked) { return ShapeLoads(asked).shape(); }

ShapeBound bound_of_family(const Case& asked) {
  return ShapeLoads(asked).family(asked.spec, asked.recomputation, asked.offloading);
}

}  // namespace stageline::planner
