// Space-time diagrams as text, for people, tests and error messages.
#pragma once

#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

struct FigureOptions {
  Time tick{};          // time of one column; 0: fit into `columns`
  int columns = 100;    // the most columns if tick is 0
  bool colour = false;  // ANSI colours: forward and backward differ in hue and in letter
};

/// One row per device: digits are forward (micro-batch mod 10), lower-case letters backward or
/// input gradient (mod 26), upper-case letters weight gradient, '~' recompute, '^' update, a blank
/// is idle time. A column shows the op that runs at its middle. Lines "  0 |0123  aabb\n", without
/// trailing blanks.
std::string figure(const Timeline& timeline, FigureOptions options = {});

/// The legend of figure(), one line.
std::string figure_legend();

/// The program's lists, one row per device, ops in columns; those in `marked` as >0F1<. At most
/// `around` ops on either side of a marked one, or all if none is marked.
std::string grid(const Program& program, const std::vector<Op>& marked, int around = 6);

}  // namespace stageline
