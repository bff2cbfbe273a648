#include "tools/study/case.hpp"

namespace stageline {

std::string_view name(DeviceOrdering ordering) {
  switch (ordering) {
    case DeviceOrdering::given:
      return "given";
    case DeviceOrdering::search:
      return "search";
  }
  return "";  // unreachable
}

}  // namespace stageline
