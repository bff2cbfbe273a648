// Cells of the CSV files that are written here (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace stageline {

/// The text as a cell: quoted where it has commas, quotes or line ends. A spreadsheet computes what
/// begins with = + - @, a tab or a carriage return, even in quotes: such a text begins with an
/// apostrophe, unless it is a number (-0.5).
std::string csv_cell(const std::string& text);

/// The text whose cell this is, once its quotes are off: without that apostrophe.
std::string text_of_cell(std::string cell);

}  // namespace stageline
