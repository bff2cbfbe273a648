// The standard normal distribution's quantile.
#pragma once

namespace stageline {

/// x with Φ(x) = p, 0 < p < 1, within 1e-15 of the true value's size (Wichura 1988, algorithm AS
/// 241, PPND16, doi 10.2307/2347330).
double normal_quantile(double p);

}  // namespace stageline
