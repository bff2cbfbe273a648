// The cycle that decides a schedule's pace, in words.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/steady_state.hpp"

namespace stageline {

/// "gpu2: 2F → 2B → 2U → (next round) 2F"; over several devices, "gpu0: 0F → activation of 0 →
/// gpu1: 1F → …". With several micro-batches a round, which in brackets: "2F(5)". Begins with a
/// forward where there is one; the middle of a long cycle is left out. `devices`: names by number.
std::string in_words(const Period& period, int round, const std::vector<std::string>& devices);

}  // namespace stageline
