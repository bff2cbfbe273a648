// The table of evidence as it is bundled in the binary.
#pragma once

#include <vector>

#include "traces/traces.hpp"

namespace stageline {

/// One file: evidence.csv, which `stageline published FILE… --evidence-out` writes.
const std::vector<Bundled>& bundled_evidence_files();

}  // namespace stageline
