// Work that goes on at a rate that changes from time to time: the bytes of a flow, or the compute
// of an op beside communication.
#pragma once

#include "sim/base/units.hpp"

namespace stageline {

/// Work is brought up to date when its rate changes, and at no other moment.
struct RatedWork {
  double left = 0;  // bytes, or picoseconds of undisturbed compute
  double rate = 0;  // of these a picosecond; 0: not known yet
  Time since{};     // of this rate

  /// From `now` on at another rate. Gives the moment of the end.
  Time go_on(double new_rate, Time now);
};

/// `left / rate` in whole picoseconds, rounded up, at least 1; so that rounding errors add no
/// picosecond, a thousandth of one and a relative 1e-14 (at most a quarter of one) are left out.
/// Throws UsageError where that is longer than `longest_run`.
Time time_to_end(double left, double rate);

}  // namespace stageline
