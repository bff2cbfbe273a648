#include "tools/study/cases_at_a_time.hpp"

#include <algorithm>

#include "tools/base/parallel.hpp"

namespace stageline {
namespace {

// The sizes of all cases under way. A case takes up to 3 kB for each micro-batch on a device.
constexpr double most_at_a_time = 1 << 20;

}  // namespace

int cases_at_a_time(double size, int workers) {
  if (workers == 0) workers = available_cores();
  return static_cast<int>(std::clamp<double>(most_at_a_time / size, 1, workers));
}

}  // namespace stageline
