// The spelling of a priced model: "model:gpt@h100,batch=8,layers=24".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>
#include <string_view>

#include "cost_models/roofline.hpp"
#include "sim/errors.hpp"

namespace stageline {
namespace {

template <typename Number>
Number number(std::string_view key, std::string_view text, std::string_view rule) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || rest != end) {
    throw UsageError(fmt::format("{} must be {}, not '{}'", key, rule, text));
  }
  return value;
}

const DeviceKind& kind_called(const std::string& name, const std::string& model,
                              const std::vector<DeviceKind>& kinds) {
  std::vector<std::string> known;
  for (const DeviceKind& kind : kinds) {
    if (kind.name == name) return kind;
    if (std::find(known.begin(), known.end(), kind.name) == known.end()) known.push_back(kind.name);
  }
  if (name.empty()) {
    throw UsageError(
        fmt::format("model {} needs a device to be priced for: write {}@DEVICE with one "
                    "of {}",
                    model, model, fmt::join(known, ", ")));
  }
  throw UsageError(fmt::format("no device is called '{}' (there are {}){}", name,
                               fmt::join(known, ", "), did_you_mean(name, known)));
}

// "key=value" into the options it belongs to.
void take(std::string_view key, std::string_view value, const std::string& model,
          RooflineOptions& options, ShapeOptions& shape) {
  static constexpr std::string_view whole = "a whole number from 1";
  std::vector<std::string> known = model_options(model);
  if (key == "batch") {
    options.batch = number<int>(key, value, whole);
    if (options.batch < 1) throw UsageError(fmt::format("batch must be {}, not {}", whole, value));
  } else if (key == "dtype") {
    options.dtype = value;
  } else if (key == "optimizer") {
    options.optimizer = value;
  } else if (key == "efficiency") {
    options.efficiency = number<double>(key, value, "a number above 0 and at most 1");
  } else if (key == "overhead") {
    try {
      options.overhead = parse_time(value);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("overhead: {}", error.what()));
    }
  } else if (std::find(known.begin(), known.end(), key) != known.end()) {
    shape[std::string(key)] = number<std::int64_t>(key, value, whole);
  } else {
    known.insert(known.end(), {"batch", "dtype", "optimizer", "efficiency", "overhead"});
    throw UsageError(fmt::format("model {} has no option '{}' (there are {}){}", model, key,
                                 fmt::join(known, ", "), did_you_mean(std::string(key), known)));
  }
}

}  // namespace

Model priced_model(const std::string& spec, const std::vector<DeviceKind>& kinds) {
  static constexpr std::string_view prefix = "model:";
  std::string_view rest = spec;
  if (rest.substr(0, prefix.size()) == prefix) rest.remove_prefix(prefix.size());
  const auto next_word = [&rest] {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    return word;
  };
  const std::string_view first = next_word();
  const std::size_t at = std::min(first.find('@'), first.size());
  const std::string name(first.substr(0, at));
  model_options(name);  // throws on an unknown model, before anything is said about its device
  const DeviceKind& kind =
      kind_called(std::string(first.substr(std::min(at + 1, first.size()))), name, kinds);
  RooflineOptions options;
  ShapeOptions shape;
  std::set<std::string_view> seen;
  while (!rest.empty()) {
    const std::string_view word = next_word();
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      throw UsageError(
          fmt::format("'{}' in '{}' is not an option, which reads key=value", word, spec));
    }
    const std::string_view key = word.substr(0, equals);
    if (!seen.insert(key).second) {
      throw UsageError(fmt::format("option '{}' stands twice in '{}'", key, spec));
    }
    take(key, word.substr(equals + 1), name, options, shape);
  }
  return roofline(model_shape(name, shape), kind, options);
}

}  // namespace stageline
