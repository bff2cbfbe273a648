// JSON, TOML and YAML as arguments: each value by the path of its keys.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/launch/arguments.hpp"
#include "tools/launch/titan_registry.hpp"
#include "traces/json/tree.hpp"

#ifdef STAGELINE_HAS_TOML
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#endif
#ifdef STAGELINE_HAS_YAML
#include <yaml-cpp/yaml.h>
#endif

namespace stageline {
namespace {

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

void add_json(const JsonValue& value, const std::string& path, LaunchArguments& all) {
  if (value.kind == JsonKind::object) {
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      add_json(value.items[i], below(path, value.keys[i]), all);
    }
    return;
  }
  if (value.kind == JsonKind::null) return;
  std::string text = value.text;
  for (const JsonValue& item : value.items) text += (text.empty() ? "" : " ") + item.text;
  all.given.push_back({path, text, ""});
}

}  // namespace

LaunchArguments read_json_arguments(const std::string& text, const std::string& file) {
  const JsonValue value = parse_json(text, file);
  if (value.kind != JsonKind::object) {
    throw TraceError(file, "", "the configuration is an object, {\"train_batch_size\": …}");
  }
  LaunchArguments all;
  all.file = file;
  add_json(value, "", all);
  return all;
}

#ifdef STAGELINE_HAS_TOML
namespace {

// A text without its quotes, everything else as it is written.
std::string toml_text(const toml::node& node) {
  if (const auto* const text = node.as_string()) return text->get();
  if (const auto* const yes = node.as_boolean()) return yes->get() ? "true" : "false";
  if (const auto* const whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* const number = node.as_floating_point()) {
    return fmt::format("{}", number->get());
  }
  std::string all;
  if (const auto* const list = node.as_array()) {
    for (const toml::node& item : *list) {
      all += (all.empty() ? "" : item.is_array() ? "|" : " ") + toml_text(item);
    }
  }
  return all;
}

void add_toml(const toml::table& table, const std::string& path, LaunchArguments& all) {
  for (const auto& [key, node] : table) {
    const std::string at = below(path, std::string(key.str()));
    if (const toml::table* const inner = node.as_table()) {
      add_toml(*inner, at, all);
    } else {
      all.given.push_back({at, toml_text(node), fmt::format("line {}", node.source().begin.line)});
    }
  }
}

}  // namespace

LaunchArguments read_toml_arguments(const std::string& text, const std::string& file) {
  LaunchArguments all;
  all.file = file;
  try {
    add_toml(toml::parse(text), "", all);
  } catch (const toml::parse_error& error) {
    throw TraceError(
        file,
        fmt::format("line {}, column {}", error.source().begin.line, error.source().begin.column),
        fmt::format("this is not TOML: {}", error.description()));
  }
  return all;
}
#else
LaunchArguments read_toml_arguments(const std::string& /*text*/, const std::string& file) {
  throw UsageError(
      fmt::format("{} is TOML, which this build does not read: it was made without toml++ (Debian: "
                  "libtomlplusplus-dev)",
                  file));
}
#endif

#ifdef STAGELINE_HAS_YAML
namespace {

constexpr int deepest = 32;

// The path that "${model.seq_length}" or, beside it, "${.seq_length}" names; empty for another
// value.
std::string interpolated_path(const LaunchArgument& argument) {
  const std::string& value = argument.value;
  if (!value.starts_with("${") || value.find('}') != value.size() - 1) return "";
  std::string path = value.substr(2, value.size() - 3);
  if (!path.starts_with('.')) return path;
  return below(argument.name.substr(0, argument.name.rfind('.')), path.substr(1));
}

// OmegaConf's references to other values; one that is not followed is left out.
void follow_references(LaunchArguments& all) {
  for (LaunchArgument& one : all.given) {
    const std::string path = interpolated_path(one);
    const auto named =
        std::find_if(all.given.begin(), all.given.end(),
                     [&](const LaunchArgument& other) { return other.name == path; });
    if (!path.empty() && named != all.given.end()) one.value = named->value;
  }
  std::erase_if(all.given, [](const LaunchArgument& one) {
    return one.value.find("${") != std::string::npos || one.value == "???";
  });
}

// "a b", and of lists inside "a b|c", an empty one with nothing between the bars.
std::string yaml_list(const YAML::Node& list) {
  std::string text;
  bool first = true;
  for (const auto& item : list) {
    if (item.IsSequence()) text += (first ? "" : "|") + yaml_list(item);
    if (item.IsScalar()) text += (text.empty() ? "" : " ") + item.Scalar();
    first = false;
  }
  return text;
}

void add_yaml(const YAML::Node& node, const std::string& path, int depth, LaunchArguments& all) {
  if (depth > deepest) {
    throw TraceError(all.file, path, fmt::format("more than {} levels", deepest));
  }
  if (node.IsMap()) {
    for (const auto& member : node) {
      if (!member.first.IsScalar()) continue;
      add_yaml(member.second, below(path, member.first.Scalar()), depth + 1, all);
    }
    return;
  }
  if (node.IsNull() || !node.IsDefined()) return;
  std::string text;
  if (node.IsScalar()) text = node.Scalar();
  if (node.IsSequence()) text = yaml_list(node);
  all.given.push_back({path, text, fmt::format("line {}", node.Mark().line + 1)});
}

}  // namespace

LaunchArguments read_yaml_arguments(const std::string& text, const std::string& file) {
  LaunchArguments all;
  all.file = file;
  try {
    const YAML::Node node = YAML::Load(text);
    if (!node.IsMap()) {
      throw TraceError(file, "", "the configuration is a mapping of names to values");
    }
    add_yaml(node, "", 0, all);
    follow_references(all);
  } catch (const YAML::Exception& error) {
    throw TraceError(file,
                     fmt::format("line {}, column {}", error.mark.line + 1, error.mark.column + 1),
                     fmt::format("this is not YAML: {}", error.msg));
  }
  return all;
}
#else
LaunchArguments read_yaml_arguments(const std::string& /*text*/, const std::string& file) {
  throw UsageError(
      fmt::format("{} is YAML, which this build does not read: it was made without yaml-cpp "
                  "(Debian: libyaml-cpp-dev)",
                  file));
}
#endif

namespace {

// A command of torchtitan names a function of config_registry.py, which says what it sets.
void refuse_titan_command(const std::string& text, const std::string& file) {
  constexpr std::string_view words[] = {"torchtitan.train", "run_train.sh"};
  const bool found = std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
    return text.find(word) != std::string::npos;
  });
  if (!found) return;
  throw TraceError(
      file, "",
      "what a --config of torchtitan sets is in config_registry.py of its module; give "
      "that file in place of the command, with --set config=NAME, and what the command "
      "changes with further --set, as parallelism.pipeline_parallel_degree=4");
}

}  // namespace

LaunchArguments read_arguments(Framework framework, const std::string& text,
                               const std::string& file, const LaunchAdditions& additions) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) throw TraceError(file, "", "the file is empty");
  switch (framework) {
    case Framework::megatron:
      return read_script(text, file, additions);
    case Framework::torchtitan:
      if (is_titan_registry(text)) return read_titan_registry(text, file, additions);
      try {
        return read_toml_arguments(text, file);
      } catch (const std::runtime_error&) {
        refuse_titan_command(text, file);
        throw;
      }
    case Framework::deepspeed:
      return read_json_arguments(text, file);
    case Framework::megatron_bridge:
    case Framework::nemo:
      return text[first] == '{' ? read_json_arguments(text, file) : read_yaml_arguments(text, file);
  }
  return {};  // unreachable; g++ wants it
}

}  // namespace stageline
