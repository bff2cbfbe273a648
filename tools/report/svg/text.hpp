// Building blocks of an SVG document: numbers, text, axes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline::report {

/// At most two decimals, no trailing zeros, never "-0".
std::string svg_number(double value);

/// Text for element content and double-quoted attributes. Bytes that XML 1.0 cannot hold (control
/// characters, invalid UTF-8) become U+FFFD.
std::string xml_escaped(std::string_view text);

/// print() without trailing zeros: "4 GB", "12.5 ms".
std::string brief(Bytes bytes);
std::string brief(Time time);

/// At most `characters` code points (at least 1), with an ellipsis where the middle was cut: names
/// of devices differ at the end.
std::string shortened(std::string_view text, std::size_t characters);

/// Width in px at a font size in px, for the broadest of the usual sans-serif fonts: an upper
/// bound.
double text_width(std::string_view text, double size);

/// Lines of at most `width` px at that font size, broken at blanks.
std::vector<std::string> text_lines(const std::string& text, double width, double size);

/// A 1-2-5 axis from 0: ticks at multiples of `step`, which are labelled in `unit`.
struct Axis {
  std::int64_t step = 1;  // ps or bytes
  std::int64_t unit = 1;  // ps or bytes
  std::string unit_name;  // "ms", "GB"
  int decimals = 0;       // needed by the labels
};
/// At most `intervals` (at least 1) steps up to `top`.
Axis time_axis(Time top, int intervals);
Axis byte_axis(Bytes top, int intervals);
/// The label of one tick, without the unit.
std::string tick_label(const Axis& axis, std::int64_t value);

}  // namespace stageline::report
