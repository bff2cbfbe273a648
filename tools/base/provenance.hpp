// Where a model's costs come from, in a few words.
#pragma once

#include <string>

#include "sim/model.hpp"

namespace stageline {

/// "measured: AMD EPYC, fp32, 1 thread, 2026-11-20": origin, device, settings, date, as far as they
/// are known.
std::string origin_of(const Provenance& provenance);

/// The method without a full stop, and without the origin where it begins with that.
std::string method_of(const Provenance& provenance);

/// How the numbers were obtained, without a full stop: of a measurement on a known device
/// origin_of, else the origin and the method ("estimated: roofline, a lower bound, …").
std::string described(const Provenance& provenance);

}  // namespace stageline
