// Fills micro-batches with images.
#include "tools/executor/train/batches.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

// Pixels along one side of the square images that the model reads.
int side_of(const ModelShape& shape) {
  const std::int64_t channels = shape.layers.front().ops.front().build.in;
  return static_cast<int>(
      std::llround(std::sqrt(static_cast<double>(shape.input) / static_cast<double>(channels))));
}

void put(const lab::DataSource& source, const lab::Dataset& part,
         const std::vector<std::size_t>& indices, lab::Augmentation augmentation,
         std::uint64_t seed, const TensorModel& model, MicroBatch& batch) {
  const int side = side_of(model.shape);
  std::vector<float> images = lab::gather_images(source, part, indices, side, augmentation, seed);
  const std::vector<std::int64_t> size{static_cast<std::int64_t>(indices.size()), part.channels,
                                       side, side};
  batch.input = at::from_blob(images.data(), size, at::TensorOptions(at::kFloat))
                    .to(model.options, false, true);
  std::vector<std::int64_t> labels;
  for (const std::size_t index : indices) labels.push_back(part.labels[index]);
  batch.target = at::from_blob(labels.data(), {static_cast<std::int64_t>(labels.size())},
                               at::TensorOptions(at::kLong))
                     .to(model.options.device(), at::kLong, false, true);
}

}  // namespace

void Batches::fill(std::uint32_t number, const TensorModel& model, MicroBatch& batch_made) const {
  const std::vector<std::size_t> indices =
      lab::batch_indices(source->train.size(), as_size(batch), seed, number);
  // Images are augmented anew in each pass over them, whatever the size of a micro-batch.
  const std::uint64_t epoch = number / (source->train.size() / as_size(batch));
  put(*source, source->train, indices, augmentation, seed * 1000003 + epoch, model, batch_made);
}

void check_fits(const ModelShape& shape, const lab::DataSource& source) {
  const LayerShape& first = shape.layers.front();
  const lab::Dataset& data = source.train;
  if (shape.sample != "image") {
    throw UsageError(fmt::format("{} reads {}s, but {} is a task of images", shape.name,
                                 shape.sample, source.name));
  }
  const std::int64_t channels = first.ops.front().build.in;
  if (channels != data.channels) {
    throw UsageError(
        fmt::format("{} reads images of {} channel{}, but those of {} have {}; try --data {}",
                    shape.name, channels, channels == 1 ? "" : "s", source.name, data.channels,
                    channels == 1 ? "digits" : "textures"));
  }
  const int side = side_of(shape);
  if (data.height > side || data.width > side) {
    throw UsageError(fmt::format("{} reads images of {} × {} pixels, but those of {} have {} × {}",
                                 shape.name, side, side, source.name, data.height, data.width));
  }
  const std::int64_t classes = shape.layers.back().output.back();
  if (classes < data.classes) {
    throw UsageError(fmt::format("{} tells {} classes apart, but {} has {}", shape.name, classes,
                                 source.name, data.classes));
  }
}

void fill_test(const lab::DataSource& source, std::size_t from, std::size_t to,
               const TensorModel& model, MicroBatch& batch) {
  std::vector<std::size_t> indices(to - from);
  std::iota(indices.begin(), indices.end(), from);
  put(source, source.test, indices, {}, 0, model, batch);
}

}  // namespace stageline::executor
