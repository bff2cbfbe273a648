// The schema of a request, made of the table of settings.
#include <algorithm>

#include "tools/base/json.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline {
namespace {

// Those between blanks.
std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Json list_or_one(const Json& one) {
  return {{"anyOf", Json::array({one, Json{{"type", "array"}, {"items", one}, {"minItems", 1}}})}};
}

Json whole_from_one(std::int64_t most) {
  return {{"type", "integer"}, {"minimum", 1}, {"maximum", most}};
}

Json type_of(const SettingRow& row) {
  Json some_text{{"type", "string"}, {"minLength", 1}};
  switch (row.form) {
    case SettingForm::text:
      return some_text;
    case SettingForm::word:
      return {{"enum", words_in(row.words)}};
    case SettingForm::file:
      return {{"anyOf", Json::array({some_text, Json{{"type", "object"}}})}};
    case SettingForm::texts:
      return list_or_one(some_text);
    case SettingForm::count:
      return whole_from_one(row.most);
    case SettingForm::counts:
      return list_or_one(whole_from_one(row.most));
    case SettingForm::number:
      return {{"type", "number"}, {"minimum", 0}, {"maximum", row.most}};
    case SettingForm::yes:
      return {{"type", "boolean"}};
    case SettingForm::amount:
      return {{"anyOf", Json::array({Json{{"type", "number"}}, some_text})}};
  }
  return {};
}

}  // namespace

std::string request_schema() {
  Json properties = Json::object();
  for (const SettingRow& row : setting_rows()) {
    if (row.of == SettingOf::chance) continue;
    Json rule{{"description", row.help}};
    rule.update(type_of(row));
    properties[row.key] = std::move(rule);
  }
  const Json schema{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Stageline request"},
      {"description",
       "What answer() of the library takes. The keys are the flags of `stageline simulate` and `stageline compare`, "
       "with the same values and defaults; but `program` is the text itself."},
      {"type", "object"},
      {"additionalProperties", false},
      {"required", Json::array({"trace"})},
      {"properties", std::move(properties)}};
  return schema.text();
}

}  // namespace stageline
