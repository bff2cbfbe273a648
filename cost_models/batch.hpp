// Costs at a batch size that was not measured.
#pragma once

#include <vector>

#include "sim/model.hpp"

namespace stageline {

/// The model for micro-batches of `batch` samples. `measured` holds the same layers at one or more
/// batch sizes, all different.
///   * a size that was measured: that model, as it is;
///   * several sizes: per layer and per quantity the least-squares line a + b·batch, a and b not
///     negative (Eigen); a note gives the median and worst relative residual over the layers that
///     take over 1 % of the time, and says "extrapolated" outside the measured range;
///     A layer's optimizer step does not depend on the batch: the mean of time and spread;
///   * one size: times and activation bytes scaled in proportion, with a note.
/// A size that was not measured has no whole run.
/// Throws UsageError when batch < 1, or when the batch size of the trace is unknown.
Model at_batch(const std::vector<Model>& measured, int batch);

/// Whether this note of a model's provenance is at_batch()'s, on costs that nobody measured at that
/// size.
bool is_on_batch(const std::string& note);

}  // namespace stageline
