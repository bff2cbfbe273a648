// Labelled images to train on: files of MNIST and CIFAR-10, or tasks drawn by rule from a seed.
// Plain values, no LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline::lab {

struct Dataset {
  int channels = 0;
  int height = 0;                    // pixels
  int width = 0;                     // pixels
  int classes = 0;                   // number of labels
  std::vector<std::uint8_t> pixels;  // images × channels × height × width
  std::vector<std::uint8_t> labels;  // below `classes`

  std::size_t size() const { return labels.size(); }
  std::size_t image_size() const {  // elements
    return as_size(channels) * as_size(height) * as_size(width);
  }
  friend bool operator==(const Dataset&, const Dataset&) = default;
};

/// The data of a name. Mean and deviation are by channel, of the training set's values from 0 to 1;
/// both parts are normalized by them.
struct DataSource {
  std::string name;   // as typed, with every option: "digits,train=6000,test=1000,…"
  std::string about;  // one line for people: content and origin
  Dataset train;
  Dataset test;
  std::vector<float> mean;
  std::vector<float> deviation;
};

/// "digits", "textures" (with options: "digits,train=6000,test=1000,noise=30,seed=1"),
/// "mnist:FOLDER" (the four IDX files, as they are or with .gz), "cifar10:FOLDER" (the binary
/// version: data_batch_1.bin to _5, test_batch.bin). The options train= and test= limit files to
/// their first images. Throws UsageError for an unknown name or option (with the nearest),
/// TraceError{file, where} for a file that violates its format.
DataSource open_data(const std::string& text);

/// All names with a line about each, for --help and errors.
std::vector<std::pair<std::string, std::string>> data_names();

/// The indices, below `size`, of the images in the `number`-th batch (from 0) of `batch` images.
/// Each epoch is shuffled anew from `seed`; the last batch of an epoch is left out unless it is
/// full. A function of its arguments alone, on every machine. 1 <= batch <= size.
std::vector<std::size_t> batch_indices(std::size_t size, std::size_t batch, std::uint64_t seed,
                                       std::uint64_t number);

/// Random variation of images each time that they are used. `shift`: pads by 4 pixels of 0 (after
/// normalization) on every side and takes a random window of the old size; `flip`: mirrors left and
/// right, in half of the cases (He et al., arXiv 1512.03385, section 4.2).
struct Augmentation {
  bool shift = false;
  bool flip = false;
};

/// Normalized images, for a model whose input is `side` pixels square: smaller ones are centred,
/// with 0 (after normalization) around; larger ones throw UsageError. Result: indices × channels ×
/// side × side. `seed` is the augmentation's; an image's variation depends only on it and on the
/// image's index, so that a batch in pieces is the same batch, and each epoch needs another seed.
std::vector<float> gather_images(const DataSource& source, const Dataset& part,
                                 const std::vector<std::size_t>& indices, int side,
                                 Augmentation augmentation = {}, std::uint64_t seed = 0);

}  // namespace stageline::lab
