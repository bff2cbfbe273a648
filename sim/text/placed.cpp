#include "sim/text/placed.hpp"

#include <fmt/format.h>

#include "sim/base/index.hpp"

namespace stageline {

std::string placed(const Program& program, int stage) {
  const StagePlace& place = nth(program.placement.stage, stage);
  const auto name = [&](int device) { return nth(program.devices, device); };
  std::string text;
  for (const int device : place.replicas) text += (text.empty() ? "" : "+") + name(device);
  if (!place.apart()) return text;
  const std::vector<int>& w = place.homes(Role::weight_grad);
  const std::vector<int>& i = place.homes(Role::input_grad);
  if (i == w) return fmt::format("F {}, B {}", text, name(w[0]));
  std::string parts;
  for (std::size_t part = 0; part < i.size(); ++part) {
    if (part > 0) parts += " + ";
    if (i.size() > 1) parts += fmt::format("{:.0f} % ", place.share[part] * 100);
    parts += name(i[part]);
  }
  return fmt::format("F {}, I {}, W {}", text, parts, name(w[0]));
}

}  // namespace stageline
