// Names of the degrees of parallelism.
#include "sim/degrees.hpp"

namespace stageline {

std::string_view name(Zero zero) {
  switch (zero) {
    case Zero::none:
      return "0";
    case Zero::optimizer:
      return "1";
    case Zero::gradients:
      return "2";
    case Zero::weights:
      return "3";
  }
  return "";
}

std::string_view name(ZeroEvery every) { return every == ZeroEvery::step ? "step" : "microbatch"; }

}  // namespace stageline
