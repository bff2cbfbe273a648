// Splits the program text into lines and words with their positions, for errors that name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stageline {

struct Word {
  std::string_view text;
  int line = 0;
  int column = 0;
};

struct Line {
  std::string_view text;  // without its comment
  int number = 0;
};

/// Throws ProgramError with the message "line 4, column 12: message".
[[noreturn]] void refuse(int line, int column, const std::string& message);
[[noreturn]] void refuse(const Word& word, const std::string& message);

/// The lines without comments, numbered from 1.
std::vector<Line> lines_of(std::string_view text);

/// The blank-separated words of `line` from position `from` on.
std::vector<Word> words_of(const Line& line, std::size_t from);

std::vector<Word> split(const Word& word, char separator);

/// The word as a number from `least` to `most`; else throws an error that names `what`.
int whole_number(const Word& word, std::string_view what, int least, int most);

/// The value in ProgramSettings::delay and ::window of a stage that has none.
inline constexpr int no_delay = -1;
inline constexpr int no_window = 0;

/// "4 2 -": one number per stage, a dash where it is `none`.
std::string by_stage(const std::vector<int>& values, int none);

}  // namespace stageline
