// Writes JSON. Numbers and unusual texts are spelled by nlohmann/json, which no other writer of the
// tools includes: it costs seconds of compilation in each file.
#include "tools/base/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace stageline {

Json::Json() = default;
Json::Json(std::nullptr_t) {}
Json::Json(bool value) : value_(value) {}
Json::Json(double value) : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(Integer number) : value_(number.value) {}
Json::Json(Natural number) : value_(number.value) {}

Json::Json(std::initializer_list<std::pair<std::string, Json>> members)
    : value_(Object(members.begin(), members.end())) {}

Json Json::array(std::initializer_list<Json> items) {
  Json json;
  json.value_ = Array(items.begin(), items.end());
  return json;
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json& Json::operator[](std::string_view key) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Object();
  auto& members = std::get<Object>(value_);
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == key; });
  if (found != members.end()) return found->second;
  return members.emplace_back(std::string(key), Json()).second;
}

Json& Json::operator[](std::size_t index) { return std::get<Array>(value_).at(index); }

std::size_t Json::size() const {
  if (const auto* const items = std::get_if<Array>(&value_)) return items->size();
  if (const auto* const members = std::get_if<Object>(&value_)) return members->size();
  return 0;
}

void Json::push_back(Json item) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Array();
  std::get<Array>(value_).push_back(std::move(item));
}

void Json::update(Json other) {
  for (auto& [key, value] : std::get<Object>(other.value_)) (*this)[key] = std::move(value);
}

namespace {

bool is_plain(char byte) { return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\'; }

struct Scalars {
  std::string& text;

  void operator()(std::monostate) const { text += "null"; }
  void operator()(bool value) const { text += value ? "true" : "false"; }
  void operator()(std::int64_t value) const {
    fmt::format_to(std::back_inserter(text), "{}", value);
  }
  void operator()(std::uint64_t value) const {
    fmt::format_to(std::back_inserter(text), "{}", value);
  }
  void operator()(double value) const { text += nlohmann::json(value).dump(); }
  void operator()(const std::string& value) const { text += json_string(value); }
};

}  // namespace

void Json::write(std::string& text, std::size_t indent) const {
  const auto new_line = [&](std::size_t blanks) { text.append(1, '\n').append(blanks, ' '); };
  const auto list = [&](char open, const auto& items, char close, const auto& write_item) {
    text += open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text += ',';
      new_line(indent + 2);
      write_item(items[i]);
    }
    if (!items.empty()) new_line(indent);
    text += close;
  };
  if (const auto* const items = std::get_if<Array>(&value_)) {
    list('[', *items, ']', [&](const Json& item) { item.write(text, indent + 2); });
  } else if (const auto* const members = std::get_if<Object>(&value_)) {
    list('{', *members, '}', [&](const auto& member) {
      text += json_string(member.first) + ": ";
      member.second.write(text, indent + 2);
    });
  } else {
    const Scalars scalars{text};
    std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (!std::is_same_v<Value, Array> && !std::is_same_v<Value, Object>) {
            scalars(value);
          }
        },
        value_);
  }
}

std::string Json::text() const {
  std::string text;
  write(text, 0);
  return text + "\n";
}

void put_time(Json& object, const std::string& key, Time time) {
  object[key + "_s"] = to_seconds(time);
  object[key + "_ps"] = time.count();
}

std::string json_string(const std::string& text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return '"' + text + '"';
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace stageline
