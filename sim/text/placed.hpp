// Where a stage is, as text for people.
#pragma once

#include <string>

#include "sim/program.hpp"

namespace stageline {

/// "gpu0"; "gpu0+gpu1" for replicas; with roles split "F gpu0, B gpu2" or "F gpu0, I 40 % gpu0 +
/// 60 % gpu1, W gpu1".
std::string placed(const Program& program, int stage);

}  // namespace stageline
