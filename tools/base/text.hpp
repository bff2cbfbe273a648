// Text for people: widths, wrapped lines, and times and shares with their sign.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/units.hpp"

namespace stageline {

/// The columns that a text takes on a terminal: one per character, none for a colour sequence.
int columns_of(std::string_view text);

/// The text with every line of more than `width` columns broken at blanks; `width` 0 or less: as it
/// is. The rest of a broken line is indented by two columns; of an entry, a name followed by two
/// blanks or more, to the column of its text, or, where that is right of the middle or too
/// narrow for a word, the text begins a line of its own. A number stays with its unit, "·" and "%"
/// with the word before them. A word is never broken.
std::string wrapped(const std::string& text, int width);

/// As one word of a POSIX shell: quoted where it must be.
std::string shell_word(const std::string& text);

/// As one line of Markdown that has no markup of its own: no HTML, no link, no cell's end.
std::string markdown_line(std::string_view text);
/// As code of one line of Markdown; a backtick in it becomes an apostrophe.
std::string markdown_code(std::string_view text);

/// "+1.500 ms", "-20.0 ns", "0".
std::string signed_time(Time time);

/// Two factors times the number that `value` begins with, in its unit and to three digits:
/// "8.9–10.6" for "9.68 s". The second has the unit behind it: "8.9–10.6 s".
std::string range_of(const std::string& value, double low, double high);
std::string range_with_unit(const std::string& value, double low, double high);

/// "+12.3 %", "-0.4 %"; without a sign where it rounds to nothing. `share`: a fraction of 1.
std::string signed_share(double share);

}  // namespace stageline
