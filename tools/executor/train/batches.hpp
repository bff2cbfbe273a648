// The micro-batches of a training as tensors.
//
// Includes ATen: for the files of this folder and its neighbours only.
#pragma once

#include <cstdint>

#include "tools/executor/tensors/tensor_model.hpp"
#include "tools/lab/datasets/dataset.hpp"

namespace stageline::executor {

/// The order of the images; `source` outlives it.
struct Batches {
  const lab::DataSource* source = nullptr;
  int batch = 1;           // images in a micro-batch
  std::uint64_t seed = 1;  // of their order and variation
  lab::Augmentation augmentation;

  /// Fills in the images and classes of the training set's micro-batch with this number, from 0.
  /// Deterministic in `number`: every caller gets the same ones. `model`: number format and device.
  void fill(std::uint32_t number, const TensorModel& model, MicroBatch& batch) const;
};

/// Throws UsageError when the model does not take such images, or has other classes than these.
void check_fits(const ModelShape& shape, const lab::DataSource& source);

/// Images `from` to `to` of the test set, without augmentation.
void fill_test(const lab::DataSource& source, std::size_t from, std::size_t to,
               const TensorModel& model, MicroBatch& batch);

}  // namespace stageline::executor
