// Selects the images of a batch, and builds the model's input from them.
#include <fmt/core.h>

#include <array>
#include <cassert>
#include <numeric>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/lab/datasets/dataset.hpp"
#include "tools/lab/datasets/random.hpp"

namespace stageline::lab {

std::vector<std::size_t> batch_indices(std::size_t size, std::size_t batch, std::uint64_t seed,
                                       std::uint64_t number) {
  if (batch < 1 || batch > size) {
    throw UsageError(
        fmt::format("a batch holds from 1 image to the whole set (it is {}, of {})", batch, size));
  }
  const std::uint64_t batches = size / batch;  // in an epoch
  RandomStream random{seed, purpose::order, number / batches};
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Fisher and Yates from the front: after step i, places 0 to i are final, so that the batches
  // after this one need not be drawn.
  const std::size_t first = as_size(number % batches) * batch;
  for (std::size_t i = 0; i < first + batch; ++i) {
    std::swap(order[i], order[i + as_size(random.below(size - i))]);
  }
  const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(batch)};
}

namespace {

// The position of the old image in the new one, and whether it is mirrored.
struct View {
  int down = 0;   // pixels
  int right = 0;  // pixels
  bool mirrored = false;
};

// Depends on the seed and the image alone, so that a batch in pieces is the same batch.
View view_of(Augmentation augmentation, std::uint64_t seed, std::size_t image) {
  constexpr int border = 4;  // pixels
  RandomStream random{seed, purpose::view, image};
  View view;
  if (augmentation.shift) {
    view.down = static_cast<int>(random.below(2 * border + 1)) - border;
    view.right = static_cast<int>(random.below(2 * border + 1)) - border;
  }
  if (augmentation.flip) view.mirrored = random.below(2) == 1;
  return view;
}

}  // namespace

std::vector<float> gather_images(const DataSource& source, const Dataset& part,
                                 const std::vector<std::size_t>& indices, int side,
                                 Augmentation augmentation, std::uint64_t seed) {
  if (part.height > side || part.width > side) {
    throw UsageError(
        fmt::format("images of {} × {} pixels do not fit into the {} × {} that the model reads; "
                    "choose a model for larger images, or other data",
                    part.width, part.height, side, side));
  }
  const auto channels = as_size(part.channels);
  const auto wide = as_size(side);
  const int top = (side - part.height) / 2;
  const int left = (side - part.width) / 2;
  std::vector<float> images(indices.size() * channels * wide * wide);
  for (std::size_t c = 0; c < channels; ++c) {
    std::array<float, 256> normalized{};
    for (std::size_t v = 0; v < normalized.size(); ++v) {
      normalized[v] = (static_cast<float>(v) / 255 - source.mean[c]) / source.deviation[c];
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
      assert(indices[i] < part.size());
      const View view = view_of(augmentation, seed, indices[i]);
      const std::size_t from = (indices[i] * channels + c) * (part.image_size() / channels);
      const std::size_t to = (i * channels + c) * wide * wide;
      for (int y = 0; y < part.height; ++y) {
        const int old_y = y - view.down;
        if (old_y < 0 || old_y >= part.height) continue;
        for (int x = 0; x < part.width; ++x) {
          const int seen = (view.mirrored ? part.width - 1 - x : x) - view.right;
          if (seen < 0 || seen >= part.width) continue;
          images[to + as_size((top + y) * side + left + x)] =
              normalized[part.pixels[from + as_size(old_y * part.width + seen)]];
        }
      }
    }
  }
  return images;
}

}  // namespace stageline::lab
