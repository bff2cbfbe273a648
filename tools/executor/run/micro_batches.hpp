// What each micro-batch of a run consists of: which tokens, how its loss counts, its data.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/executor/run/job.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {

/// The tokens that it has of each of its sequences; a count of 0: its samples are none.
TokenRange tokens_of(const Job& job, std::uint32_t microbatch);

/// The share of its loss in what an update differentiates. That is the mean over all rows of a
/// step's logits, so a micro-batch counts by its tokens; where each has an update of its own, once.
double loss_weight_of(const Job& job, std::uint32_t microbatch);

/// Sizes of a layer's output: of the whole micro-batch.
std::vector<std::int64_t> output_of(const Job& job, std::size_t layer, std::uint32_t microbatch);

/// Drawn by the seed, for a run without a plan: the same for equal jobs, wherever it is drawn. The
/// slices of a sequence are cut from the data of a whole one.
MicroBatch drawn_micro_batch(const Job& job, const TensorModel& model, std::uint32_t microbatch);

/// The number of micro-batches after which drawn data repeat.
std::uint32_t distinct_micro_batches(const Job& job);

/// Throws UsageError for lengths that the model does not have, slices that do not divide it, and
/// programs with slices that need more than they keep here.
void check_tokens(const Job& job);

}  // namespace stageline::executor
