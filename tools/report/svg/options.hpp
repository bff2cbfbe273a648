// How an SVG is to look.
#pragma once

#include <cstdint>
#include <string>

namespace stageline::report {

enum class Theme : std::uint8_t {
  automatic,  // light, or dark where the viewer asks for it (prefers-color-scheme)
  light,
  dark,
};

struct SvgOptions {
  Theme theme = Theme::automatic;
  int width = 1000;     // px, in the range of check_width(); the height follows from the content
  std::string title{};  // in the place of the picture's own; empty: that
  /// The figure alone, for a paper or a slide: without a heading (but `title`) and notes, on a
  /// transparent ground.
  bool plain = false;
};

}  // namespace stageline::report
