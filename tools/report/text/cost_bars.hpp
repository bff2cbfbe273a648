// The bars of the tables of costs.
#pragma once

#include <string>
#include <vector>

#include "cost_models/breakdown.hpp"

namespace stageline {

/// A bar as long as F + B + update is of `longest`, which fills `width` cells: █ F, ▓ I, ▒ W,
/// ░ update. B is divided as I is to W, and is all I where these are 0. ▏ where it is too short for
/// a cell; nothing where there is no time.
std::string cost_bar(const CostRow& row, Time longest, int width);

/// What the signs of cost_bar mean, in one line without an end.
std::string cost_bar_legend();

/// The signs of the bars in the colours of the figures (ANSI). Of a table that is ready, since
/// colours would count as characters.
std::string coloured_bars(const std::string& text);

/// first / second in three digits: "0.556×", "1.50×", "1/237×" where it is below 0.1; "∞" for
/// something over nothing, "–" for nothing over nothing.
std::string ratio_text(Time first, Time second);

/// first / second on a log scale from 1/widest to widest, `half` cells to each side of │, which is
/// 1×: to the left where the first is faster. An arrow at the end where one of them takes no time
/// or the scale does not reach; │ alone where both take none.
std::string ratio_bar(Time first, Time second, double widest, int half);

/// The scale that ratio_bar needs for all of these: one of 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, …
double widest_ratio(const std::vector<CostPair>& pairs);

/// The ends and the middle of the scale, as wide as ratio_bar.
std::string ratio_scale(double widest, int half);

}  // namespace stageline
