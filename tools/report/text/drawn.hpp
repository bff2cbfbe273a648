// The space-time diagrams of schedules as text, one below the other.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/drawn.hpp"

namespace stageline::report {

struct DrawnView {
  int width = 0;        // the most columns of a line of words; 0: any
  int columns = 100;    // of a diagram
  bool colour = false;  // of it
  bool full = false;    // all devices
  bool quiet = false;   // no legends
};

/// Diagrams with their weight versions and legends; several have columns of the same time.
std::string drawn_text(const answers::DrawingAnswer& drawn, const DrawnView& view);

/// What a reader must know, each once.
std::vector<std::string> drawn_notes(const answers::DrawingAnswer& drawn);

}  // namespace stageline::report
