// Splits the program text into lines and words, and reads numbers.
#include "sim/text/words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {

void refuse(int line, int column, const std::string& message) {
  throw ProgramError(fmt::format("line {}, column {}: {}", line, column, message));
}
void refuse(const Word& word, const std::string& message) {
  refuse(word.line, word.column, message);
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    lines.push_back({line, ++number});
  }
  return lines;
}

std::vector<Word> words_of(const Line& line, std::size_t from) {
  std::vector<Word> words;
  constexpr std::string_view blanks = " \t\r";
  std::size_t at = line.text.find_first_not_of(blanks, from);
  while (at != std::string_view::npos) {
    std::size_t end = line.text.find_first_of(blanks, at);
    if (end == std::string_view::npos) end = line.text.size();
    words.push_back({line.text.substr(at, end - at), line.number, static_cast<int>(at) + 1});
    at = line.text.find_first_not_of(blanks, end);
  }
  return words;
}

int whole_number(const Word& word, std::string_view what, int least, int most) {
  const auto value = parse_number<int>(word.text);
  if (!value || *value < least || *value > most) {
    refuse(word, fmt::format("{} must be a whole number from {} to {} (it is \"{}\")", what, least,
                             most, word.text));
  }
  return *value;
}

std::vector<Word> split(const Word& word, char separator) {
  std::vector<Word> parts;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = std::min(word.text.find(separator, at), word.text.size());
    parts.push_back(
        {word.text.substr(at, end - at), word.line, word.column + static_cast<int>(at)});
    if (end == word.text.size()) return parts;
    at = end + 1;
  }
}

std::string by_stage(const std::vector<int>& values, int none) {
  std::string text;
  for (const int value : values) {
    text += text.empty() ? "" : " ";
    text += value == none ? "-" : std::to_string(value);
  }
  return text;
}

}  // namespace stageline
