// Writes JSON strings and filled lists.
#include "traces/json/parts.hpp"

#include <nlohmann/json.hpp>

namespace stageline {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_lines(const std::vector<std::string>& items, std::string_view indent) {
  constexpr std::size_t widest = 98;
  std::string text;
  std::string line;
  for (const std::string& item : items) {
    if (!line.empty() && indent.size() + line.size() + 2 + item.size() > widest) {
      text += ",\n" + std::string(indent) + line;
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + item;
  }
  return text + ",\n" + std::string(indent) + line;
}

}  // namespace stageline
