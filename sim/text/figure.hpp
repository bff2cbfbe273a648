// Space-time diagrams as text, for people, tests and error messages.
#pragma once

#include <string>
#include <vector>

#include "sim/program.hpp"
#include "sim/timeline.hpp"

namespace stageline {

struct FigureOptions {
  Time tick{};          // time of one column; 0: fit `columns`
  int columns = 100;    // at most, when tick is 0
  bool colour = false;  // ANSI, forward and backward told apart by hue and by letter
};

/// One row a device: digits forward (micro-batch mod 10), lower-case letters backward or input
/// gradient (mod 26), upper-case letters weight gradient, '~' recompute, '^' update, blank a
/// bubble. A column shows what runs at its middle. Lines "  0 |0123  aabb\n", without trailing
/// blanks.
std::string figure(const Timeline& timeline, FigureOptions options = {});

/// The legend that belongs to it, one line.
std::string figure_legend();

/// The program's own lists, one row a device, ops in columns; those in `marked` as >0F1<. At most
/// `around` ops either side of a marked one, all when nothing is marked.
std::string grid(const Program& program, const std::vector<Op>& marked, int around = 6);

}  // namespace stageline
