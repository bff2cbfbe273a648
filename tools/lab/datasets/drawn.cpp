// Draws both parts of a generated data set.
#include "sim/base/index.hpp"
#include "tools/lab/datasets/kinds.hpp"

namespace stageline::lab {
namespace {

Dataset drawn_part(Dataset set, std::uint64_t purpose, std::int64_t count,
                   const DataOptions& options, Draw draw) {
  const auto seed = static_cast<std::uint64_t>(options.at("seed"));
  const std::size_t image_size = set.image_size();
  const auto images = as_size(count);
  set.pixels.resize(images * image_size);
  set.labels.resize(images);
  for (std::size_t i = 0; i < images; ++i) {
    const int label = static_cast<int>(i % as_size(set.classes));
    RandomStream random{seed, purpose, i};
    set.labels[i] = static_cast<std::uint8_t>(label);
    draw(random, label, options, std::span(set.pixels).subspan(i * image_size, image_size));
  }
  return set;
}

}  // namespace

DataParts drawn_parts(const Dataset& empty, const DataOptions& options, Draw draw) {
  return {drawn_part(empty, purpose::train_image, options.at("train"), options, draw),
          drawn_part(empty, purpose::test_image, options.at("test"), options, draw)};
}

}  // namespace stageline::lab
