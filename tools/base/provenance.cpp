#include "tools/base/provenance.hpp"

namespace stageline {

std::string origin_of(const Provenance& provenance) {
  std::string text(name(provenance.origin));
  const char* before = ": ";
  for (const std::string* const part :
       {&provenance.device, &provenance.settings, &provenance.date}) {
    if (part->empty()) continue;
    text += before + *part;
    before = ", ";
  }
  return text;
}

std::string method_of(const Provenance& provenance) {
  const std::string origin = std::string(name(provenance.origin)) + ": ";
  std::string method = provenance.method;
  while (!method.empty() && method.back() == '.') method.pop_back();
  // A method may say for itself what kind of number it gives.
  return method.compare(0, origin.size(), origin) == 0 ? method.substr(origin.size()) : method;
}

std::string described(const Provenance& provenance) {
  if (provenance.origin == Origin::measured && !provenance.device.empty()) {
    return origin_of(provenance);
  }
  const std::string method = method_of(provenance);
  const std::string origin(name(provenance.origin));
  return method.empty() ? origin : origin + ": " + method;
}

}  // namespace stageline
