// A character grid, on which the text charts are drawn.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/text.hpp"

namespace stageline::report {

/// A rectangle of cells, each of one character (any UTF-8 character that takes one column). Drawing
/// outside of it has no effect.
struct Canvas {
  int columns = 0;
  std::vector<std::vector<std::string>> rows;

  Canvas(int width, int height);
  bool blank(int row, int column) const;
  const std::string& at(int row, int column) const;
  void put(int row, int column, std::string_view character);
  void write(int row, int column, std::string_view text);
  /// One row, without trailing blanks.
  std::string line(int row) const;
};

/// Lines of at most `columns` characters, each of which ends with '\n', broken at blanks; longer
/// words lose their middle.
std::string wrapped_text(const std::string& text, int columns);

/// Entries of a key, three blanks apart, in as many lines as needed.
std::string key_text(const std::vector<std::string>& entries, int columns);

/// Numbers under the marked columns of an axis that begins at `first`: a line with '\n'. `at` and
/// `labels` are parallel. False where two of them would touch or one leaves [0, columns).
struct AxisNumbers {
  std::string line;
  bool fits = true;
};
AxisNumbers axis_numbers(const std::vector<int>& at, const std::vector<std::string>& labels,
                         int columns);

/// How many letters there are: those of Latin, and those of Greek that look like none of them.
inline constexpr std::size_t letters = 36;

/// 'A' for 0; small: 'a'. number < letters.
std::string letter(std::size_t number, bool small = false);

/// Whether a character is one of them.
bool is_letter(std::string_view character);

}  // namespace stageline::report
