// The bars in the cost tables.
#pragma once

#include <string>
#include <vector>

#include "cost_models/breakdown.hpp"

namespace stageline::report {

/// A bar as long as F + B + update is of `longest`, which fills `width` cells: █ F, ▓ I, ▒ W,
/// ░ update. B is divided in the ratio of I to W, and is all I where both are 0. ▏ where it is too
/// short for a cell; empty where there is no time.
std::string cost_bar(const CostRow& row, Time longest, int width);

/// The key of cost_bar's signs, in one line without a line end.
std::string cost_bar_legend();

/// Adds ANSI colours, those of the figures, to the bars. Apply it to the finished table: colours
/// would count as characters.
std::string coloured_bars(const std::string& text);

/// first / second in three digits: "0.556×", "1.50×", "1/237×" where it is below 0.1; "∞" for
/// something over nothing, "–" for nothing over nothing.
std::string ratio_text(Time first, Time second);

/// first / second on a log scale from 1/widest to widest, `half` cells to each side of │, which is
/// 1×: to the left where the first is faster. An arrow at the end where one of them takes no time
/// or the ratio exceeds the scale; │ alone where both take none.
std::string ratio_bar(Time first, Time second, double widest, int half);

/// The scale that ratio_bar needs for all of these: one of 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, …
double widest_ratio(const std::vector<CostPair>& pairs);

/// The ends and the middle of the scale, as wide as ratio_bar.
std::string ratio_scale(double widest, int half);

}  // namespace stageline::report
