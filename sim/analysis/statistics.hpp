// What many runs of one thing say together.
#pragma once

#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

/// The middle one, or the mean of the two in the middle. 0 of none.
Time median(std::vector<Time> samples);

/// What one of many ops takes in a longer run: the median over groups of eight consecutive samples
/// of the groups' means (the last group is the longest). A run is a sum of many ops, so what
/// disturbs one op in ten slows every run: the median of the ops does not see it, the mean does. A
/// stall that only few runs meet is left out, as the median of the runs leaves it out. 0 of none.
Time typical(const std::vector<Time>& samples);

/// Half the distance between the quartiles (by linear interpolation, as NumPy's percentile).
Time half_interquartile(std::vector<Time> samples);

/// How far the medians of the first and of the second half of the samples, in the order they were
/// taken, lie apart: what the machine itself changed meanwhile. 0 of fewer than two.
Time drift(const std::vector<Time>& samples);

/// a as a fraction of b; 0 when b is 0.
double fraction_of(Time a, Time b);

}  // namespace stageline
