// Writes and reads cells of CSV files.
#include "tools/base/csv_cell.hpp"

#include <cmath>
#include <optional>

#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr char mark = '\'';
constexpr std::string_view computed = "=+-@\t\r";

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::optional<double> number = parse_number<double>(text);
  return number && std::isfinite(*number);
}

bool begins_with_one_of(std::string_view text, std::string_view letters) {
  return !text.empty() && letters.find(text.front()) != std::string_view::npos;
}

// Whether text_of_cell() takes the first letter off.
bool is_marked(std::string_view text) {
  return text.starts_with(mark) &&
         (begins_with_one_of(text.substr(1), computed) || text.substr(1).starts_with(mark));
}

}  // namespace

std::string csv_cell(const std::string& text) {
  const bool formula = begins_with_one_of(text, computed) && !is_number(text);
  std::string shown = formula || is_marked(text) ? mark + text : text;
  if (shown.find_first_of(",\"\r\n") == std::string::npos) return shown;
  std::string cell = "\"";
  for (const char c : shown) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

std::string text_of_cell(std::string cell) {
  if (is_marked(cell)) cell.erase(0, 1);
  return cell;
}

}  // namespace stageline
