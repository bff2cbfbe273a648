// Typed access to JSON values, with errors that name their pointer.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/text/visible.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

std::string_view name(JsonKind kind) {
  switch (kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return "true or false";
    case JsonKind::number:
      return "a number";
    case JsonKind::text:
      return "a text";
    case JsonKind::list:
      return "a list";
    case JsonKind::object:
      return "an object";
  }
  return "";
}

std::vector<std::string> all_of(const std::vector<std::string>& a,
                                const std::vector<std::string>& b) {
  std::vector<std::string> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

std::optional<double> finite(const std::string& digits) {
  const auto number = parse_number<double>(digits);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace

std::string pointer_step(std::string_view key) {
  std::string step = "/";
  for (const char c : head_of(key, 60)) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

void JsonNode::refuse(const std::string& message) const {
  throw TraceError(*file_, where_, message);
}

void JsonNode::need(JsonKind wanted) const {
  if (kind() != wanted) {
    refuse(fmt::format("this must be {}, not {}", name(wanted), name(kind())));
  }
}

JsonNode JsonNode::child(std::size_t index, std::string_view step) const {
  return {value_->items[index], where_ + std::string(step), *file_};
}

void JsonNode::check_keys(const std::vector<std::string>& required,
                          const std::vector<std::string>& optional) const {
  need(JsonKind::object);
  const std::vector<std::string> known = all_of(required, optional);
  for (std::size_t i = 0; i < value_->keys.size(); ++i) {
    const std::string& key = value_->keys[i];
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    child(i, pointer_step(key))
        .refuse(
            fmt::format("{} is not a known key here{}", in_quotes(key), suggestion(key, known)));
  }
  for (const std::string& key : required) {
    if (!find(key)) refuse(fmt::format("\"{}\" is missing", key));
  }
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  need(JsonKind::object);
  const auto found = std::find(value_->keys.begin(), value_->keys.end(), key);
  if (found == value_->keys.end()) return {};
  return child(as_size(found - value_->keys.begin()), pointer_step(key));
}

JsonNode JsonNode::at(std::string_view key) const {
  std::optional<JsonNode> found = find(key);
  if (!found) refuse(fmt::format("\"{}\" is missing", key));
  return *found;
}

std::vector<JsonNode> JsonNode::members() const {
  need(JsonKind::object);
  std::vector<JsonNode> nodes;
  for (std::size_t i = 0; i < value_->items.size(); ++i) {
    nodes.push_back(child(i, pointer_step(value_->keys[i])));
  }
  return nodes;
}

std::string JsonNode::key() const { return where_.substr(where_.rfind('/') + 1); }

std::vector<JsonNode> JsonNode::items() const {
  need(JsonKind::list);
  std::vector<JsonNode> nodes;
  nodes.reserve(value_->items.size());
  for (std::size_t i = 0; i < value_->items.size(); ++i) {
    nodes.push_back(child(i, fmt::format("/{}", i)));
  }
  return nodes;
}

bool JsonNode::boolean() const {
  need(JsonKind::boolean);
  return value_->text == "true";
}

std::string JsonNode::text() const {
  need(JsonKind::text);
  return value_->text;
}

std::string JsonNode::text_or_empty(std::string_view key) const {
  const std::optional<JsonNode> found = find(key);
  return found ? found->text() : std::string{};
}

std::int64_t JsonNode::whole(std::int64_t least, std::int64_t most) const {
  need(JsonKind::number);
  const std::optional<ScaledDecimal> number = scale_decimal(value_->text, 0);
  if (number && !number->exact) {
    refuse(fmt::format("this must be a whole number (it is {})", value_->text));
  }
  if (number && number->value < 0 && least >= 0) {
    refuse(fmt::format("this must not be negative (it is {})", value_->text));
  }
  if (!number || number->value < least || number->value > most) {
    refuse(fmt::format("this must be from {} to {} (it is {})", least, most, value_->text));
  }
  return number->value;
}

Time JsonNode::microseconds() const {
  need(JsonKind::number);
  const std::optional<ScaledDecimal> number = scale_decimal(value_->text, 6);
  if (value_->text.front() == '-' && (!number || number->value < 0 || !number->exact)) {
    refuse(fmt::format("a time must not be negative (it is {} µs)", value_->text));
  }
  if (!number || number->value > longest_input.count()) {
    refuse(fmt::format("a time must be at most {} µs, which is {:.0f} s (it is {} µs)",
                       longest_input.count() / 1'000'000, to_seconds(longest_input), value_->text));
  }
  return Time{number->value};
}

Bytes JsonNode::bytes() const { return {whole(0, most_bytes)}; }

double JsonNode::number() const {
  need(JsonKind::number);
  const std::optional<double> number = finite(value_->text);
  if (!number) refuse(fmt::format("this must be a finite number (it is {})", value_->text));
  return *number;
}

double JsonNode::positive() const {
  need(JsonKind::number);
  const std::optional<double> number = finite(value_->text);
  if (!number || *number <= 0) {
    refuse(fmt::format("this must be a positive number (it is {})", value_->text));
  }
  return *number;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  if (text.size() <= longest) return fmt::format("\"{}\"", text);
  return fmt::format("\"{}…\"", head_of(text, longest));
}

std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  return name.size() > 60 ? "" : did_you_mean(name, known);
}

}  // namespace stageline
