#include "traces/pipedream/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most_layers = 1 << 20;

std::string ranges_of(const std::vector<std::int64_t>& layers) {
  std::string text;
  std::int64_t first = 0;
  for (const std::int64_t count : layers) {
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", first, first + count - 1);
    first += count;
  }
  return text;
}

std::string of_balance(const JsonNode& list) {
  std::vector<std::int64_t> layers;
  for (const JsonNode& item : list.items()) layers.push_back(item.whole(1, most_layers));
  return ranges_of(layers);
}

std::string of_modules(const JsonNode& list) {
  std::vector<std::int64_t> layers;
  for (const JsonNode& item : list.items()) {
    const std::int64_t stage = item.whole(0, most_layers);
    const auto last = static_cast<std::int64_t>(layers.size()) - 1;
    if (stage != last && stage != last + 1) {
      item.refuse(
          fmt::format("is stage {} behind stage {}; a cut has its stages in order, one "
                      "after the other",
                      stage, last));
    }
    if (stage > last) layers.push_back(0);
    ++layers.back();
  }
  if (layers.empty() || --layers.back() == 0) {
    list.refuse("has no layer in its last stage, whose last module is the loss");
  }
  return ranges_of(layers);
}

}  // namespace

std::string ranges_of_plan(const std::string& text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  const bool modules = text[first] == '{' && text.find("module_to_stage_map") != std::string::npos;
  if (text[first] != '[' && !modules) return "";
  const JsonValue value = parse_json(text, file);
  const JsonNode root(value, "", file);
  if (!modules) return value.items.empty() ? "" : of_balance(root);
  const JsonNode list = root.at("module_to_stage_map");
  return of_modules(list);
}

}  // namespace stageline
