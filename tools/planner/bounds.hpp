// What no schedule and no cut of a shape can beat, in microseconds.
#pragma once

#include <string>

#include "tools/planner/candidate.hpp"
#include "tools/study/case.hpp"

namespace stageline::planner {

/// Never above what simulating any of the candidates that it is a bound of gives; `fitting` of
/// those alone that fit in a limit.
struct ShapeBound {
  Time step{};        // work, the longest layer, fill, and of a family gathers that nothing hides
  std::string why;    // which of them, in words with the figures
  Bytes memory{};     // of the fullest device: weights, gradients, optimizer, the least stash
  std::string where;  // which device, and what fills it most ("gpu7, the vocabulary")
  /// The step of what fits in the limit: at least `step`. Where the family recomputes nothing, also
  /// of its candidates when some of their stages do.
  Time fitting{};
};

/// The bound of all flushed schedules, on all cuts; without flush a step need not wait for a
/// micro-batch's way. `asked`: a case of the shape; its schedule, cut and recomputation are
/// ignored: the bound holds with full recomputation and offload, too.
ShapeBound bound_of_shape(const Case& asked);

/// The bound of one schedule with its recomputation, on any cut: at least bound_of_shape(). For
/// flushed schedules it includes fill and drain.
ShapeBound bound_of_family(const Case& asked);

}  // namespace stageline::planner
