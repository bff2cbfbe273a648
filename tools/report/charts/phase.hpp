// A map of winners over two axes: which of several is the best where, by how much, and where memory
// decides it.
//
//   256 ┤AAAABBBB   a letter: the winner     a small one: a faster one does not fit into memory
//    64 ┤AAABBBBb   ·: none fits             blank: none can run
//       └┬──────┬
//       1GB/s  400GB/s
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/charts/chart.hpp"

namespace stageline::report {

struct PhaseCell {
  std::optional<std::size_t> winner;  // of the names
  std::optional<double> lead;         // over the second, less 1; empty: there is none that fits
  bool possible = false;              // one can run, whether or not it fits
  bool by_memory = false;             // a faster one does not fit
  bool known = true;                  // else taken from its neighbours, which agree
  std::string second{};
};

/// A label at a place on an axis, in cells from its lower edge: 0.5 is the middle of the first.
struct PhaseTick {
  double at = 0;
  std::string label;
};

/// All cells have the same size, whatever their distance on the axes.
struct PhaseChart {
  std::string title;
  std::string subtitle;
  std::string x;  // "link"
  std::string y;
  std::vector<std::string> xs;                // values, the first at the left
  std::vector<std::string> ys;                // the first below
  std::vector<std::string> names;             // at most 36
  std::vector<std::vector<PhaseCell>> cells;  // [y][x]
  std::vector<std::string> footnotes;
  std::string x_words{};  // title of the axis: "link bandwidth"; empty: x
  std::string y_words{};
  std::vector<PhaseTick> x_ticks{};  // at round values; empty: each value has its own
  std::vector<PhaseTick> y_ticks{};
};

/// Lines of equal lead are drawn at these.
inline constexpr std::array phase_leads{0.01, 0.02, 0.05, 0.1, 0.2, 0.5};

/// A colour for each winner, with its name in its widest place; a thick line between winners, thin
/// ones where the lead passes phase_leads, with the lead beside them, hatching where memory
/// decides. Each cell has a tooltip. Throws UsageError for more than 36 names and a bad width.
std::string phase_svg(const PhaseChart& chart, const SvgOptions& options = {});

/// The same as text, at most `columns` wide (at least 30) and `rows` (at least 2) high without the
/// axis; larger maps leave cells out, and note it.
std::string phase_text(const PhaseChart& chart, int columns, int rows);

/// "zb_h1: 42 % of the map, up to 12.3 % ahead" for each that wins anywhere, the most first.
std::vector<std::string> phase_shares(const PhaseChart& chart);

}  // namespace stageline::report
