// Vertical sync: a micro-batch goes by the version that it met at the first stage, in all stages
// and both ways. Its gradient is then that of weights that the whole model had at one time. Harlap
// et al., "PipeDream", arXiv 1806.03377, section 3.3.
#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {

extern const Correction vertical_sync_correction;
const Correction vertical_sync_correction = {
    "vertical_sync",
    "all stages read the version that the first stage read",
    "Harlap et al. 2018, arXiv 1806.03377",
    WeightRule::vertical_sync,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    false,
};

}  // namespace stageline::executor
