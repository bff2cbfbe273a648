// Text of others, such as a name in a file, made safe to print.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stageline {

/// Whether all its bytes are characters in UTF-8.
bool is_utf8(std::string_view text);

/// The first `most` bytes, less a character that would be cut in two.
std::string_view head_of(std::string_view text, std::size_t most);

/// `text` as one line that cannot drive a terminal: control characters as their pictures (␛ for
/// ESC), C1 controls, marks that turn the direction of writing and bytes that are not UTF-8 as
/// U+FFFD.
std::string visible(std::string_view text);

/// The same, but keeps "\x1b[38;5;32m" and the like, which colour reports, with "\x1b[0m".
std::string visible_cell(std::string_view text);

/// The same of a report: keeps newlines and tabs, too.
std::string visible_lines(std::string_view text);

}  // namespace stageline
