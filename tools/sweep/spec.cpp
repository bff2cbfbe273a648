// Reads and checks sweeps, and counts in their digits.
#include "tools/sweep/spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr std::string_view sweep_format = "stageline-sweep 1";
constexpr std::int64_t least_chunk = 1000;
constexpr std::int64_t usual_chunks = 1000;
constexpr std::int64_t largest_usual_chunk = 10'000;

std::string text_of(const JsonValue& value);

std::string members_of(const JsonValue& value) {
  std::string members;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) members += ",";
    if (value.kind == JsonKind::object) members += json_string(value.keys[i]) + ":";
    members += value.items[i].kind == JsonKind::text ? json_string(value.items[i].text)
                                                     : text_of(value.items[i]);
  }
  return members;
}

// As it would be typed; an object or list as JSON.
std::string text_of(const JsonValue& value) {
  if (value.kind == JsonKind::object) return "{" + members_of(value) + "}";
  if (value.kind == JsonKind::list) return "[" + members_of(value) + "]";
  return value.text;
}

// The value of a member, which is not a list nor null.
std::string single_text(const JsonValue& value, const JsonNode& node) {
  if (value.kind == JsonKind::list) {
    node.refuse("a fixed setting has one value; several of them are an axis");
  }
  if (value.kind == JsonKind::null) node.refuse("it has no value");
  return text_of(value);
}

const JsonValue& member(const JsonValue& object, std::string_view key) {
  const auto at = std::find(object.keys.begin(), object.keys.end(), key);
  return object.items[static_cast<std::size_t>(at - object.keys.begin())];
}

SweepAxis axis_of(const std::string& name, const JsonValue& value, const JsonNode& node) {
  if (value.kind != JsonKind::list) return parse_axis(name, single_text(value, node));
  std::vector<std::string> values;
  const std::vector<JsonNode> nodes = node.items();
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    values.push_back(single_text(value.items[i], nodes[i]));
  }
  return list_axis(name, std::move(values));
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Calls `take` for the text before each {name}, with the name; returns what is behind the last.
std::string_view each_variable(
    std::string_view text,
    const std::function<void(std::string_view before, std::string_view name)>& take) {
  std::size_t from = 0;
  while (true) {
    const std::size_t open = text.find('{', from);
    const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) return text;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    if (!is_name(name)) {
      from = open + 1;
      continue;
    }
    take(text.substr(0, open), name);
    text.remove_prefix(close + 1);
    from = 0;
  }
}

std::vector<std::string> variables_of(const SweepSpec& spec) {
  std::vector<std::string> names;
  const auto look = [&](const std::string& text) {
    each_variable(text, [&](std::string_view, std::string_view name) { names.emplace_back(name); });
  };
  for (const SettingWord& word : spec.fixed) look(word.text);
  for (const SweepAxis& axis : spec.axes) {
    for (const std::string& value : axis.values) look(value);
  }
  return names;
}

// Whether a setting is fixed or an axis.
bool says(const SweepSpec& spec, std::string_view key) {
  return std::any_of(spec.fixed.begin(), spec.fixed.end(),
                     [&](const SettingWord& word) { return word.key == key; }) ||
         std::any_of(spec.axes.begin(), spec.axes.end(),
                     [&](const SweepAxis& axis) { return axis.name == key; });
}

void check_names(const SweepSpec& spec) {
  const std::vector<std::string> variables = variables_of(spec);
  std::vector<std::string> axes;
  for (const SweepAxis& axis : spec.axes) axes.push_back(axis.name);
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw UsageError(fmt::format("axis {}: it is there twice", axes[i]));
    }
    for (const SettingWord& word : spec.fixed) {
      if (word.key != axes[i]) continue;
      throw UsageError(fmt::format("axis {}: it is fixed, too, at {}; leave one of them out",
                                   axes[i], word.text));
    }
    for (const char* const taken :
         {"number", "step_ps", "step_low_ps", "step_high_ps", "throughput", "bubble", "peak_bytes",
          "peak_low_bytes", "peak_high_bytes", "fits", "why_not"}) {
      if (axes[i] != taken) continue;
      throw UsageError(
          fmt::format("axis {}: that is a column of the results; give the variable "
                      "another name",
                      axes[i]));
    }
    if (is_sweep_key(axes[i]) || has(variables, axes[i])) continue;
    std::vector<std::string> known = sweep_keys();
    known.insert(known.end(), variables.begin(), variables.end());
    const std::string no_variable =
        is_name(axes[i])
            ? fmt::format("no other setting has {{{}}} in it", axes[i])
            : "no name of a variable, which has small letters, digits and underscores alone";
    throw UsageError(fmt::format("axis {}: it is no setting, and {}{}; the settings are {}",
                                 axes[i], no_variable, did_you_mean(axes[i], known),
                                 fmt::join(sweep_keys(), ", ")));
  }
  for (const std::string& name : variables) {
    if (has(axes, name)) continue;
    throw UsageError(
        fmt::format("{{{}}} stands for an axis, and there is none of that name{}; "
                    "give --axis {}=…",
                    name, did_you_mean(name, axes), name));
  }
  for (const SettingWord& word : spec.fixed) {
    if (is_sweep_key(word.key)) continue;
    throw UsageError(fmt::format("there is no setting \"{}\"{}", word.key,
                                 did_you_mean(word.key, sweep_keys())));
  }
  if (!says(spec, "trace")) throw UsageError("a sweep needs a trace, fixed or as an axis");
}

void check_count(const SweepSpec& spec) {
  double count = static_cast<double>(std::max<std::int64_t>(spec.draws, 1));
  std::string product;
  for (const SweepAxis& axis : spec.axes) {
    count *= static_cast<double>(axis.count);
    if (!axis.is_random()) {
      product += fmt::format("{}{} {}", product.empty() ? "" : " × ", axis.count, axis.name);
    }
  }
  if (spec.draws > 0)
    product += fmt::format("{}{} draws", product.empty() ? "" : " × ", spec.draws);
  if (count > static_cast<double>(most_sweep_scenarios)) {
    throw UsageError(fmt::format("the sweep has {:.4g} scenarios ({}); at most {} are numbered",
                                 count, product, most_sweep_scenarios));
  }
}

void check_draws(const SweepSpec& spec) {
  const auto random = std::find_if(spec.axes.begin(), spec.axes.end(),
                                   [](const SweepAxis& axis) { return axis.is_random(); });
  if (random == spec.axes.end() && spec.draws > 0) {
    throw UsageError(
        "draws are of random axes, and there is none; give --axis NAME=FROM..TO:random");
  }
  if (random != spec.axes.end() && spec.draws < 1) {
    throw UsageError(
        fmt::format("axis {}: how many values are drawn? give --draws N", random->name));
  }
}

// Every value of a list, both ends of a range, beside the first values of the other axes.
void check_values(const SweepSpec& spec) {
  const std::vector<std::string> first = axis_values(spec, 0);
  const auto look = [&](const std::vector<std::string>& values) {
    perturbation_of(question_of(words_of(spec, values)));
  };
  look(first);
  for (std::size_t i = 0; i < spec.axes.size(); ++i) {
    const SweepAxis& axis = spec.axes[i];
    std::vector<std::string> values = axis.values;
    if (axis.kind != SweepAxis::Kind::list) values = {axis.from.text, axis.to.text};
    for (const std::string& value : values) {
      std::vector<std::string> one = first;
      one[i] = value;
      try {
        look(one);
      } catch (const std::runtime_error& error) {
        throw UsageError(fmt::format("axis {}: {}: {}", axis.name, value, error.what()));
      }
    }
  }
}

}  // namespace

std::int64_t SweepSpec::scenarios() const {
  std::int64_t count = std::max<std::int64_t>(draws, 1);
  for (const SweepAxis& axis : axes) count *= axis.count;
  return count;
}

bool is_sweep_file(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\"stageline-sweep ") != std::string_view::npos;
}

SweepSpec read_sweep(std::string_view json, const std::string& file) {
  return read_sweep(parse_json(std::string(json), file), file);
}

SweepSpec read_sweep(const JsonValue& root, const std::string& file) {
  const JsonNode node(root, "", file);
  node.check_keys({"format", "axes"}, {"fixed", "draws", "draw_seed", "chunk"});
  if (node.at("format").text() != sweep_format) {
    node.at("format").refuse(fmt::format("the format is \"{}\"", sweep_format));
  }
  SweepSpec spec;
  if (const auto fixed = node.find("fixed")) {
    const std::vector<JsonNode> members = fixed->members();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const JsonValue& value = member(root, "fixed").items[i];
      spec.fixed.push_back({members[i].key(), single_text(value, members[i])});
    }
  }
  const std::vector<JsonNode> axes = node.at("axes").members();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    spec.axes.push_back(axis_of(axes[i].key(), member(root, "axes").items[i], axes[i]));
  }
  if (const auto draws = node.find("draws")) spec.draws = draws->whole(1, most_sweep_scenarios);
  if (const auto seed = node.find("draw_seed")) {
    spec.draw_seed = static_cast<std::uint64_t>(seed->whole(0, most_bytes));
  }
  if (const auto chunk = node.find("chunk")) spec.chunk = chunk->whole(1, most_chunk);
  return checked(std::move(spec));
}

SweepSpec checked(SweepSpec spec) {
  if (!says(spec, "schedule")) spec.fixed.push_back({"schedule", "1f1b"});
  std::sort(spec.fixed.begin(), spec.fixed.end(),
            [](const SettingWord& a, const SettingWord& b) { return a.key < b.key; });
  if (spec.axes.empty()) throw UsageError("a sweep needs an axis: --axis devices=2..16");
  check_names(spec);
  check_draws(spec);
  check_count(spec);
  if (spec.chunk == 0) {
    spec.chunk = std::clamp(spec.scenarios() / usual_chunks, least_chunk, largest_usual_chunk);
  }
  check_values(spec);
  return spec;
}

Json question_json(const SweepSpec& spec) {
  Json fixed = Json::object();
  for (const SettingWord& word : spec.fixed) fixed[word.key] = word.text;
  Json axes = Json::object();
  for (const SweepAxis& axis : spec.axes) {
    axes[axis.name] = axis.kind == SweepAxis::Kind::list ? Json(axis.values) : Json(axis.text);
  }
  Json text{{"format", sweep_format}, {"fixed", fixed}, {"axes", axes}};
  if (spec.draws > 0) {
    text["draws"] = spec.draws;
    text["draw_seed"] = spec.draw_seed;
  }
  text["chunk"] = spec.chunk;
  return text;
}

std::vector<std::int64_t> digits_of(const SweepSpec& spec, std::int64_t number) {
  std::vector<std::int64_t> digits(spec.axes.size() + (spec.draws > 0 ? 1 : 0));
  if (spec.draws > 0) {
    digits.back() = number % spec.draws;
    number /= spec.draws;
  }
  for (std::size_t i = spec.axes.size(); i-- > 0;) {
    digits[i] = number % spec.axes[i].count;
    number /= spec.axes[i].count;
  }
  return digits;
}

std::int64_t number_of(const SweepSpec& spec, const std::vector<std::int64_t>& digits) {
  std::int64_t number = 0;
  for (std::size_t i = 0; i < spec.axes.size(); ++i) {
    number = number * spec.axes[i].count + digits[i];
  }
  return spec.draws > 0 ? number * spec.draws + digits.back() : number;
}

std::vector<std::string> axis_values(const SweepSpec& spec, std::int64_t number) {
  const std::vector<std::int64_t> digits = digits_of(spec, number);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < spec.axes.size(); ++i) {
    const SweepAxis& axis = spec.axes[i];
    values.push_back(axis.is_random()
                         ? axis.drawn(static_cast<std::uint64_t>(digits.back()), spec.draw_seed)
                         : axis.value(digits[i]));
  }
  return values;
}

std::vector<std::string> texts_of(const SweepSpec& spec, const std::string& text) {
  constexpr std::int64_t most = 10'000;
  std::vector<std::string> texts{""};
  bool all = true;
  const std::string_view rest =
      each_variable(text, [&](std::string_view before, std::string_view name) {
        const auto axis = std::find_if(spec.axes.begin(), spec.axes.end(),
                                       [&](const SweepAxis& one) { return one.name == name; });
        all = all && axis != spec.axes.end() && !axis->is_random() &&
              axis->count <= most / std::ssize(texts);
        if (!all) return;
        std::vector<std::string> longer;
        for (const std::string& one : texts) {
          for (std::int64_t digit = 0; digit < axis->count; ++digit) {
            longer.push_back(one + std::string(before) + axis->value(digit));
          }
        }
        texts = std::move(longer);
      });
  if (!all) return {};
  for (std::string& one : texts) one += rest;
  return texts;
}

std::vector<SettingWord> words_of(const SweepSpec& spec, const std::vector<std::string>& values) {
  const auto in_place = [&](const std::string& text) {
    std::string result;
    const std::string_view rest =
        each_variable(text, [&](std::string_view before, std::string_view name) {
          result += before;
          const auto axis = std::find_if(spec.axes.begin(), spec.axes.end(),
                                         [&](const SweepAxis& one) { return one.name == name; });
          result += values[static_cast<std::size_t>(axis - spec.axes.begin())];
        });
    return result += rest;
  };
  std::vector<SettingWord> words;
  for (const SettingWord& word : spec.fixed) words.push_back({word.key, in_place(word.text)});
  for (std::size_t i = 0; i < spec.axes.size(); ++i) {
    const std::string& name = spec.axes[i].name;
    if (is_sweep_key(name)) words.push_back({name, in_place(values[i])});
  }
  return words;
}

}  // namespace stageline
