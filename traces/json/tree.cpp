// Builds a JSON tree with the digits of its numbers.
#include "traces/json/tree.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

std::string line_and_column(const std::string& text, std::size_t position) {
  const std::size_t end = std::min(position == 0 ? 0 : position - 1, text.size());
  const auto begin = text.begin();
  const auto stop = begin + static_cast<std::ptrdiff_t>(end);
  const auto lines = std::count(begin, stop, '\n');
  const std::size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t column = newline == std::string::npos ? end + 1 : end - newline;
  return fmt::format("line {}, column {}", lines + 1, column);
}

// Builds the tree from nlohmann's SAX events, which carry each number's digits. Open lists and
// objects are kept on an explicit stack, so nesting costs no call frames.
class TreeBuilder {
 public:
  TreeBuilder(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  JsonValue take() { return std::move(root_); }

  // NOLINTBEGIN(readability-identifier-naming): the names are nlohmann's
  bool null() { return add({JsonKind::null, "null", {}, {}}); }
  bool boolean(bool value) { return add({JsonKind::boolean, value ? "true" : "false", {}, {}}); }
  bool number_integer(std::int64_t value) {
    return add({JsonKind::number, std::to_string(value), {}, {}});
  }
  bool number_unsigned(std::uint64_t value) {
    return add({JsonKind::number, std::to_string(value), {}, {}});
  }
  bool number_float(double, const std::string& digits) {
    return add({JsonKind::number, digits, {}, {}});
  }
  bool string(std::string& value) { return add({JsonKind::text, std::move(value), {}, {}}); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // never occurs in JSON text
  bool start_object(std::size_t) { return open(JsonKind::object); }
  bool start_array(std::size_t) { return open(JsonKind::list); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    if (!open_.back().seen.insert(key).second) {
      throw TraceError(file_, where() + pointer_step(key),
                       fmt::format("the key {} appears twice in one object; each may appear once",
                                   in_quotes(key)));
    }
    open_.back().value.keys.push_back(std::move(key));
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception& error) {
    refuse_syntax(text_, file_, position, error.what());
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  struct Open {
    JsonValue value;
    std::unordered_set<std::string> seen;
  };

  bool add(JsonValue value) {
    if (++values_ > json_most_values) {
      throw TraceError(
          file_, "",
          fmt::format("the file holds more than {} values; that is not a trace", json_most_values));
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().value.items.push_back(std::move(value));
    }
    return true;
  }

  bool open(JsonKind kind) {
    if (open_.size() >= json_deepest) {
      throw TraceError(file_, where(),
                       fmt::format("lists and objects are nested more than {} deep", json_deepest));
    }
    open_.push_back({{kind, {}, {}, {}}, {}});
    return true;
  }

  bool close() {
    JsonValue done = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(done));
  }

  // Pointer of the innermost open list or object.
  std::string where() const {
    std::string pointer;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const JsonValue& value = open_[i].value;
      pointer += value.kind == JsonKind::list ? fmt::format("/{}", value.items.size())
                                              : pointer_step(value.keys.back());
    }
    return pointer;
  }

  const std::string& text_;
  const std::string& file_;
  JsonValue root_;
  std::vector<Open> open_;
  std::size_t values_ = 0;
};

// What nlohmann's parser reports, by a part of its message, and our words for it. The first that
// fits; the last fits all.
struct SyntaxFault {
  std::string_view reported;
  std::string_view said;
};
constexpr SyntaxFault syntax_faults[] = {
    {"ill-formed UTF-8", "a text has bytes that are not UTF-8; save the file as UTF-8"},
    {"missing closing quote", "a text has no closing quote"},
    {"control character", "a text has a control character, such as a line's end, unescaped"},
    {"4 hex digits", "\\u in a text needs four hexadecimal digits behind it"},
    {"surrogate", "\\u in a text writes half of a surrogate pair"},
    {"after backslash", "a backslash in a text needs one of \"\\/bfnrtu behind it"},
    {"invalid number", "a number lacks digits"},
    {"number overflow", "a number is larger than any that is read"},
    {"unexpected end of input", "it ends before its last list or object is closed"},
    {"expected end of input", "it goes on behind its value"},
    {"parsing object key", "a key in double quotes must be here"},
    {"parsing object separator", "a colon must be here"},
    {"parsing object", "a comma or } must be here"},
    {"parsing array", "a comma or ] must be here"},
    {"",
     "a value must be here: an object, a list, a text in double quotes, a number, true, false or "
     "null"},
};

}  // namespace

void refuse_syntax(const std::string& text, const std::string& file, std::size_t position,
                   std::string what) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing
  // value - invalid literal; last read: 'x'"
  const std::size_t read = what.find("; last read: ");  // the file's own words
  const std::size_t expected = what.rfind("; expected ");
  if (read != std::string::npos) {
    what.erase(read, expected > read ? expected - read : std::string::npos);
  }
  const auto* const fault = std::find_if(
      std::begin(syntax_faults), std::end(syntax_faults),
      [&](const SyntaxFault& one) { return what.find(one.reported) != std::string::npos; });
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
  throw TraceError(
      file, line_and_column(text, position),
      fmt::format("this is not JSON: {}", blank ? "there is nothing in it" : fault->said));
}

JsonValue parse_json(const std::string& text, const std::string& file) {
  if (text.size() > json_longest_text) {
    throw TraceError(
        file, "",
        fmt::format("the file has {} bytes; at most {} are read", text.size(), json_longest_text));
  }
  TreeBuilder builder(text, file);
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace stageline
