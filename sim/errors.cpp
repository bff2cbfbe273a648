// Words the suggestion of the nearest known name.
#include "sim/errors.hpp"

#include "sim/nearest.hpp"

namespace stageline {

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string found = nearest(name, known);
  return found.empty() ? "" : " (did you mean \"" + found + "\"?)";
}

}  // namespace stageline
