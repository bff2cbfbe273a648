// How fast a device is, by class of work: arithmetic, and traffic to its memory.
#pragma once

#include <cmath>

#include "sim/base/units.hpp"
#include "sim/cluster.hpp"

namespace stageline {

/// Speeds relative to the device that the trace was measured on (or priced for).
struct Rates {
  double matrix = 1;  // of layers bound by arithmetic
  double memory = 1;  // of layers bound by memory (Layer::memory_bound) and of optimizer steps

  friend bool operator==(const Rates&, const Rates&) = default;
};

/// Device::rate and Device::memory_rate, which is 0 where the device has one rate.
inline Rates rates_of(const Device& device) {
  return {device.rate, device.memory_rate > 0 ? device.memory_rate : device.rate};
}

/// Time of some layers at rate 1, and the part of it that is bound by memory.
struct ClassTimes {
  Time all{};
  Time memory{};

  ClassTimes& operator+=(ClassTimes other) {
    all += other.all;
    memory += other.memory;
    return *this;
  }
};

/// Picoseconds on a device of these rates, not rounded. At equal rates it is the whole time over
/// the one rate: where the classes do not differ, it does not matter how the time divides into
/// them.
inline double picoseconds(ClassTimes times, Rates rates) {
  if (rates.matrix == rates.memory) return static_cast<double>(times.all.count()) / rates.matrix;
  return static_cast<double>((times.all - times.memory).count()) / rates.matrix +
         static_cast<double>(times.memory.count()) / rates.memory;
}

/// The same in whole picoseconds, rounded once; at a rate of 1 exact, however long.
inline Time at_rates(ClassTimes times, Rates rates) {
  if (rates == Rates{}) return times.all;
  return Time{std::llround(picoseconds(times, rates))};
}

}  // namespace stageline
