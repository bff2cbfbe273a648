// Marks on boxes that tell the stages of a device apart without colour, in a grey print.
//
//   bar       [    ] [====]          every second stage, or the second direction: where it is paler
//   notches   [    ] ['   ] [''  ]   as many as the device has stages before this one
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/report/timeline/svg_boxes.hpp"

namespace stageline::report {

enum class StageMark : std::uint8_t { none, bar, notches };

/// Whether each box with a piece of its own has room for as many notches as its piece has in
/// `counts`.
bool have_room_for_notches(const Boxes& boxes, const std::vector<int>& counts);

/// Whether bars() draws any.
bool has_bars(const Boxes& boxes);

/// The marks on the boxes of a compute lane: bars on pale tones, or notches, `counts` by piece.
/// Merged boxes have none. `top` and `height` in px.
std::string bars(const Boxes& boxes, double top, double height);
std::string notches(const Boxes& boxes, const std::vector<int>& counts, double top, double height);

}  // namespace stageline::report
