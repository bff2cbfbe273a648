// Opens data by their name on the command line ("digits,train=2000").
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/spec.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/lab/datasets/kinds.hpp"

namespace stageline::lab {
namespace {

// In the order of --help.
const std::array<const DataKind*, 4> kinds{&digits_data, &textures_data, &mnist_data,
                                           &cifar10_data};

// Whether the name is followed by a folder.
bool in_files(const DataKind& kind) { return kind.form != kind.name; }

const DataKind& kind_called(const std::string& name) {
  std::vector<std::string> known;
  std::vector<std::string_view> forms;
  for (const DataKind* const kind : kinds) {
    if (kind->name == name) return *kind;
    known.emplace_back(kind->name);
    forms.push_back(kind->form);
  }
  throw UsageError(fmt::format("there are no data called \"{}\"{}; there are {}", name,
                               did_you_mean(name, known), fmt::join(forms, ", ")));
}

DataOptions complete(const DataKind& kind, const Spec& words) {
  DataOptions options;
  std::vector<std::string> known;
  for (const DataOption& option : kind.options) {
    options.emplace(option.name, option.fallback);
    known.emplace_back(option.name);
  }
  for (const auto& word : words.options) {
    const std::string& key = word.first;  // clang 14 cannot capture structured bindings
    const auto option = std::find_if(kind.options.begin(), kind.options.end(),
                                     [&](const DataOption& one) { return one.name == key; });
    if (option == kind.options.end()) {
      throw UsageError(fmt::format("{} has no option '{}' (there are {}){}", kind.name, key,
                                   fmt::join(known, ", "), did_you_mean(key, known)));
    }
    options[key] = whole_number(fmt::format("{}: {}", kind.name, key), word.second, option->most,
                                option->least);
  }
  return options;
}

// Keeps the first `wanted` images; all of them if that is 0.
void shorten(Dataset& set, const std::string& what, std::int64_t wanted) {
  if (wanted == 0) return;
  const auto count = as_size(wanted);
  if (count > set.size()) {
    throw UsageError(fmt::format("{}={} exceeds the {} images available", what, count, set.size()));
  }
  set.labels.resize(count);
  set.pixels.resize(count * set.image_size());
}

// Mean and deviation by channel, of values from 0 to 1. The sums are integers, so the order of
// addition does not matter.
void measure(DataSource& source) {
  const Dataset& set = source.train;
  const auto channels = as_size(set.channels);
  const std::size_t plane = set.image_size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (std::size_t i = 0; i < set.size(); ++i) {
      const auto first =
          set.pixels.begin() + static_cast<std::ptrdiff_t>(i * set.image_size() + c * plane);
      std::for_each(first, first + static_cast<std::ptrdiff_t>(plane), [&](std::uint64_t value) {
        sum += value;
        squares += value * value;
      });
    }
    const auto count = static_cast<double>(set.size() * plane);
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    // All values are equal: there is nothing to divide by.
    const double deviation = variance > 0 ? std::sqrt(variance) : 255;
    source.mean.push_back(static_cast<float>(mean / 255));
    source.deviation.push_back(static_cast<float>(deviation / 255));
  }
}

}  // namespace

DataSource open_data(const std::string& text) {
  const Spec words = parse_spec(text);
  const std::size_t colon = std::min(words.head.find(':'), words.head.size());
  const DataKind& kind = kind_called(words.head.substr(0, colon));
  const std::string folder = words.head.substr(std::min(colon + 1, words.head.size()));
  if (in_files(kind) && folder.empty()) {
    throw UsageError(fmt::format("{} is read from files: write {}", kind.name, kind.form));
  }
  if (!in_files(kind) && colon < words.head.size()) {
    throw UsageError(fmt::format("{} is drawn, not read: write {} without \"{}\"", kind.name,
                                 kind.name, words.head.substr(colon)));
  }
  DataOptions options = complete(kind, words);
  DataParts parts = kind.open(folder, options);
  shorten(parts.train, fmt::format("{}: train", kind.name), options.at("train"));
  shorten(parts.test, fmt::format("{}: test", kind.name), options.at("test"));
  DataSource source;
  source.name = words.head;
  options["train"] = static_cast<std::int64_t>(parts.train.size());
  options["test"] = static_cast<std::int64_t>(parts.test.size());
  for (const DataOption& option : kind.options) {
    source.name += fmt::format(",{}={}", option.name, options.find(option.name)->second);
  }
  source.about = fmt::format("{}; {} training images, {} test images", kind.summary,
                             parts.train.size(), parts.test.size());
  source.train = std::move(parts.train);
  source.test = std::move(parts.test);
  measure(source);
  return source;
}

std::vector<std::pair<std::string, std::string>> data_names() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const DataKind* const kind : kinds) {
    std::string line(kind->summary);
    line += " · options:";
    for (const DataOption& option : kind->options) {
      line += fmt::format(" {}={}", option.name,
                          option.fallback == 0 ? "" : std::to_string(option.fallback));
    }
    names.emplace_back(kind->form, line);
  }
  return names;
}

}  // namespace stageline::lab
