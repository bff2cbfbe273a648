// The kinds of data, each a constant at the end of its own .cpp. For this folder only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "tools/lab/datasets/dataset.hpp"
#include "tools/lab/datasets/random.hpp"

namespace stageline::lab {

struct DataOption {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
  std::int64_t fallback;  // 0 for files: all of their images
  std::string_view summary;
};

/// Values by name, with all defaults filled in.
using DataOptions = std::map<std::string, std::int64_t, std::less<>>;

struct DataParts {
  Dataset train;
  Dataset test;
};

struct DataKind {
  std::string_view name;
  std::string_view form;  // as typed: "mnist:FOLDER"
  std::string_view summary;
  std::span<const DataOption> options;
  /// `folder` is empty for generated data.
  DataParts (*open)(const std::string& folder, const DataOptions& options);
};

extern const DataKind digits_data;
extern const DataKind textures_data;
extern const DataKind mnist_data;
extern const DataKind cifar10_data;

/// Draws one image: the label is the image's number modulo ten, and all else follows from (seed,
/// purpose, number), so that a longer set begins with the images of a shorter one, and train and
/// test have separate streams.
using Draw = void (*)(RandomStream& random, int label, const DataOptions& options,
                      std::span<std::uint8_t> image);

/// The nearest pixel value.
inline std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0., 255.)));
}

/// Options train, test and seed, and those that `draw` reads.
DataParts drawn_parts(const Dataset& empty, const DataOptions& options, Draw draw);

}  // namespace stageline::lab
