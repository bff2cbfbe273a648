// Weight stashing: a micro-batch's backward goes by the version that its forward went by, which is
// kept until then. The gradient is then that of some weights, if old ones.
// Harlap et al., "PipeDream", arXiv 1806.03377, section 3.3.
#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {

extern const Correction stash_correction;
const Correction stash_correction = {
    "stash",
    "backwards read the version that their forward read",
    "Harlap et al. 2018, arXiv 1806.03377",
    WeightRule::stash,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    false,
};

}  // namespace stageline::executor
