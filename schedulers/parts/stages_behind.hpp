// How far each stage is from the end of the stage graph: what a stage of 1F1B has to be ahead by.
#pragma once

#include <span>
#include <vector>

#include "sim/placement.hpp"

namespace stageline {

/// By stage, how many stages its output passes on the longest way to an end: p-1-s in a chain. Of
/// branches beside each other (encoders before one language model, as Cornstarch's modality
/// parallelism has them, arXiv 2503.11367) each counts its own stages alone, so that a
/// stage warms up with, and holds, as many micro-batches as are ahead of it on its own way. Along
/// every edge the number falls, and so orders of forwards ahead by any multiple of it can run.
/// Edges lead to later stages. O(stages · edges).
std::vector<int> stages_behind(std::span<const StageEdge> edges, int stages);

}  // namespace stageline
