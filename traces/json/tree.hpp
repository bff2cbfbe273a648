// JSON as it was written: numbers keep their digits, so that a time is rounded only once, and no
// key is lost. Used by the readers in traces/; traces/README.md describes the file formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace stageline {

enum class JsonKind : std::uint8_t { null, boolean, number, text, list, object };

struct JsonValue {
  JsonKind kind = JsonKind::null;
  std::string text;               // a string's text; a number's digits; "true" or "false"
  std::vector<std::string> keys;  // an object's keys, in file order
  std::vector<JsonValue> items;   // a list's items; an object's values, parallel to keys
};

/// Limits on input size; larger files are rejected.
inline constexpr std::size_t json_longest_text = std::size_t{16} << 20U;  // bytes
inline constexpr std::size_t json_most_values = 2'000'000;
inline constexpr std::size_t json_deepest = 16;  // nesting depth of lists and objects

/// Throws TraceError: with line and column on a syntax error, with the JSON pointer on a duplicate
/// key, and when a limit is exceeded.
JsonValue parse_json(const std::string& text, const std::string& file);

/// Throws TraceError for text that is not JSON: line and column of `position`, which is counted
/// from 1, and in our words what nlohmann's exception says.
[[noreturn]] void refuse_syntax(const std::string& text, const std::string& file,
                                std::size_t position, std::string what);

/// A value and its location. Every typed accessor throws TraceError, with the JSON pointer, when
/// the value has another type.
class JsonNode {
 public:
  JsonNode(const JsonValue& value, std::string where, const std::string& file)
      : value_(&value), where_(std::move(where)), file_(&file) {}

  JsonKind kind() const { return value_->kind; }
  bool is_list() const { return kind() == JsonKind::list; }
  const std::string& file() const { return *file_; }

  [[noreturn]] void refuse(const std::string& message) const;

  /// Rejects keys that are in neither list, and a missing one of `required`.
  void check_keys(const std::vector<std::string>& required,
                  const std::vector<std::string>& optional) const;

  std::optional<JsonNode> find(std::string_view key) const;
  JsonNode at(std::string_view key) const;  // throws when missing
  std::vector<JsonNode> members() const;    // of an object, in order
  std::string key() const;                  // a member's key: the last part of its pointer
  std::vector<JsonNode> items() const;      // of a list

  bool boolean() const;
  std::string text() const;
  std::string text_or_empty(std::string_view key) const;  // of an optional member

  /// A whole number from `least` to `most`.
  std::int64_t whole(std::int64_t least, std::int64_t most) const;
  /// Microseconds with any number of decimals, rounded once to the picosecond; at most
  /// longest_input.
  Time microseconds() const;
  /// A whole number of bytes up to 2^62.
  Bytes bytes() const;
  /// Any finite number.
  double number() const;
  /// A positive number.
  double positive() const;

 private:
  void need(JsonKind kind) const;
  JsonNode child(std::size_t index, std::string_view step) const;

  const JsonValue* value_;
  std::string where_;
  const std::string* file_;
};

inline constexpr std::int64_t most_bytes = std::int64_t{1} << 62U;

/// number · 10^shift as an integer, rounded once (halves away from zero); `exact` when nothing was
/// rounded off. Empty when `number` is not a JSON number or the result is beyond ±2^62.
struct ScaledDecimal {
  std::int64_t value = 0;
  bool exact = true;
};
std::optional<ScaledDecimal> scale_decimal(std::string_view number, int shift);

/// One step of a JSON pointer (RFC 6901): '/', then the key with '~' and '/' escaped, shortened if
/// long.
std::string pointer_step(std::string_view key);

/// `text` in double quotes, shortened if long: for messages.
std::string in_quotes(std::string_view text);

/// did_you_mean, or an empty string for a name too long to be a typo.
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace stageline
