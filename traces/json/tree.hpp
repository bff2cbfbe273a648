// JSON as it was written: numbers keep their digits, so that a time is rounded once and no key is
// lost. For the readers in this folder; the files themselves are described in traces/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.hpp"

namespace stageline {

enum class JsonKind : std::uint8_t { null, boolean, number, text, list, object };

struct JsonValue {
  JsonKind kind = JsonKind::null;
  std::string text;               // of a text; the digits of a number; "true" or "false"
  std::vector<std::string> keys;  // of an object, in the order of the file
  std::vector<JsonValue> items;   // of a list; of an object, parallel to keys
};

/// Limits of what is read at all; past them the file is refused.
inline constexpr std::size_t json_longest_text = std::size_t{16} << 20U;  // bytes
inline constexpr std::size_t json_most_values = 2'000'000;
inline constexpr std::size_t json_deepest = 16;  // lists and objects inside each other

/// Throws TraceError: with line and column on a syntax error, with the JSON pointer on a key that
/// stands twice, and when a limit is passed.
JsonValue parse_json(const std::string& text, const std::string& file);

/// Throws TraceError for text that is not JSON: line and column of `position`, which is counted
/// from 1, and what nlohmann's exception says.
[[noreturn]] void refuse_syntax(const std::string& text, const std::string& file,
                                std::size_t position, std::string what);

/// A value and where it stands. Everything that asks for a kind of value throws TraceError, with
/// the JSON pointer, when it is another.
class JsonNode {
 public:
  JsonNode(const JsonValue& value, std::string where, const std::string& file)
      : value_(&value), where_(std::move(where)), file_(&file) {}

  JsonKind kind() const { return value_->kind; }
  bool is_list() const { return kind() == JsonKind::list; }
  const std::string& file() const { return *file_; }

  [[noreturn]] void refuse(const std::string& message) const;

  /// Refuses keys that are in neither list, and a missing one of `required`.
  void check_keys(const std::vector<std::string>& required,
                  const std::vector<std::string>& optional) const;

  std::optional<JsonNode> find(std::string_view key) const;
  JsonNode at(std::string_view key) const;  // refuses when missing
  std::vector<JsonNode> members() const;    // of an object, in order
  std::string key() const;                  // of a member: the last part of its pointer
  std::vector<JsonNode> items() const;      // of a list

  bool boolean() const;
  std::string text() const;
  std::string text_or_empty(std::string_view key) const;  // of a member that may be missing

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

/// number · 10^shift as a whole number, rounded once (halves away from zero); `exact` when nothing
/// was rounded off. Nothing when `number` is not a JSON number or the result is beyond ±2^62.
struct ScaledDecimal {
  std::int64_t value = 0;
  bool exact = true;
};
std::optional<ScaledDecimal> scale_decimal(std::string_view number, int shift);

/// One step of a JSON pointer (RFC 6901): '/', then the key with '~' and '/' escaped, cut when it
/// is long.
std::string pointer_step(std::string_view key);

/// `text` within double quotes, cut when it is long: for messages.
std::string in_quotes(std::string_view text);

/// did_you_mean, or nothing for a name too long to be a slip of the pen.
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace stageline
