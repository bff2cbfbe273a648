// How an SVG is to look.
#pragma once

#include <cstdint>

namespace stageline {

enum class Theme : std::uint8_t {
  automatic,  // light, or dark where the viewer asks for it (prefers-color-scheme)
  light,
  dark,
};

struct SvgOptions {
  Theme theme = Theme::automatic;
  int width = 1000;  // px, 400 to 10000; the height follows from the content
};

}  // namespace stageline
