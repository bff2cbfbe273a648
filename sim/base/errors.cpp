// Words of errors: names with a NUL, the suggestion of the nearest known name.
#include "sim/base/errors.hpp"

#include "sim/base/nearest.hpp"

namespace stageline {

std::string without_nul(std::string_view message) {
  std::string out;
  out.reserve(message.size());
  for (const char c : message) {
    if (c == '\0') {
      out += "\u2400";
    } else {
      out += c;
    }
  }
  return out;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string found = nearest(name, known);
  return found.empty() ? "" : " (did you mean \"" + found + "\"?)";
}

}  // namespace stageline
