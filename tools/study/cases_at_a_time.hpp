// How many cases are simulated side by side.
#pragma once

namespace stageline {

/// How many cases of that size, the devices that are simulated times their micro-batches and steps,
/// are simulated at a time: up to `workers` (0: one a processor core), and as many as take 3 GB of
/// memory together.
int cases_at_a_time(double size, int workers);

}  // namespace stageline
