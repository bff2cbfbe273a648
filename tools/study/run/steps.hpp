// Programs of fewer and of more steps, made from one that is there.
#pragma once

#include "sim/program.hpp"

namespace stageline {

/// The first `steps` steps of a program: its ops with lower numbers, in their order. `steps` <=
/// program.steps. O(ops).
Program beginning_of(const Program& program, int steps);

/// The program `times` times over, with micro-batches and updates numbered on. O(ops).
Program repeated(const Program& program, int times);

}  // namespace stageline
