// What many runs of one thing say together.
#pragma once

#include <vector>

#include "sim/units.hpp"

namespace stageline {

/// The middle one, or the mean of the two in the middle. 0 of none.
Time median(std::vector<Time> samples);

/// Half the distance between the quartiles (by linear interpolation, as NumPy's percentile).
Time half_interquartile(std::vector<Time> samples);

/// How far the medians of the first and of the second half of the samples, in the order they were
/// taken, lie apart: what the machine itself changed meanwhile. 0 of fewer than two.
Time drift(const std::vector<Time>& samples);

/// a as a fraction of b; 0 when b is 0.
double fraction_of(Time a, Time b);

}  // namespace stageline
