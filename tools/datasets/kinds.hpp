// The kinds of data there are, each a constant at the foot of its own .cpp. For this folder only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "tools/datasets/dataset.hpp"
#include "tools/datasets/random.hpp"

namespace stageline {

struct DataOption {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
  std::int64_t fallback;  // 0 where `most` is what a file holds: all of it
  std::string_view summary;
};

/// By name; complete: defaults filled in.
using DataOptions = std::map<std::string, std::int64_t, std::less<>>;

struct DataParts {
  Dataset train;
  Dataset test;
};

struct DataKind {
  std::string_view name;
  std::string_view form;  // as it is typed: "mnist:FOLDER"
  std::string_view summary;
  std::span<const DataOption> options;
  /// `folder` is empty for what is drawn.
  DataParts (*open)(const std::string& folder, const DataOptions& options);
};

extern const DataKind digits_data;
extern const DataKind textures_data;
extern const DataKind mnist_data;
extern const DataKind cifar10_data;

/// How images are drawn: the label is the image's number modulo ten, and all else follows from
/// (seed, purpose, number), so that a longer set begins as a shorter one does, and train and test
/// have streams of their own.
using Draw = void (*)(RandomStream& random, int label, const DataOptions& options,
                      std::span<std::uint8_t> image);

/// The nearest of the values that a pixel can have.
inline std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0., 255.)));
}

/// Options train, test and seed, and those that `draw` reads.
DataParts drawn_parts(const Dataset& empty, const DataOptions& options, Draw draw);

}  // namespace stageline
