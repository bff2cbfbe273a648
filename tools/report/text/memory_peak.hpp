// The peak of memory in words: when, at which op, and what the device holds then.
#pragma once

#include <string>

#include "tools/study/outcome.hpp"

namespace stageline::report {

/// "gpu0 peaks at 61.20 GB at 12.30 ms while 0F7 (forward of micro-batch 7 in stage 0) runs: 40.00
/// GB stash (8 micro-batches), 16.00 GB weights, …; beside it 2.000 GB of reserve", the largest
/// first. Without the composition where that is not known; empty where the bytes are not.
std::string peak_sentence(const Outcome& outcome, int device);

/// A line for the device that peaks highest (Outcome::peak_device), or with `all` for each.
std::string peak_lines(const Outcome& outcome, bool all);

}  // namespace stageline::report
