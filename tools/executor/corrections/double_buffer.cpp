// Double-buffered weights: a step's micro-batches all go by the weights that the step before the
// last one left, so that two versions and a delay of one step are enough, however deep the
// pipeline. Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training" (PipeDream-2BW),
// arXiv 2006.09503. For schedules whose steps have several micro-batches (pipedream_2bw).
#include "tools/executor/corrections/correction.hpp"

namespace stageline::executor {

extern const Correction double_buffer_correction;
const Correction double_buffer_correction = {
    "double_buffer",
    "a step reads what the step before the last one left: two versions, a delay of 1",
    "Narayanan et al. 2021, arXiv 2006.09503",
    WeightRule::double_buffer,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    false,
};

}  // namespace stageline::executor
