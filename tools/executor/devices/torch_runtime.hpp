// The part of process.hpp that needs LibTorch. The header does not.
#pragma once

#include "tools/executor/processes/process.hpp"

namespace stageline::executor {

/// How many threads one operation of the calling thread uses from now on (OpenMP's, MKL's and
/// OpenBLAS's); no operation runs beside another. Throws UsageError below 1.
void set_threads(int threads);

/// What this process runs on, with the threads and cores set so far. Multiplies matrices for some
/// 0.2 s to see how fast the BLAS is.
ProcessReport inspect_process();

}  // namespace stageline::executor
