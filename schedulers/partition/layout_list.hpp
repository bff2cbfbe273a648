// A layout of Megatron as Python writes it: [["embedding"] + ["decoder"] * 3, ["decoder", "loss"]].
#pragma once

#include <string>
#include <string_view>

namespace stageline {

/// Whether the text begins as a list of lists of words.
bool is_layout_list(std::string_view text);

/// The list as letters and bars, "Ettt|tL": of lists, texts in either quotes, + of lists and * of a
/// list with a whole number. Throws UsageError with the column.
std::string letters_of_list(std::string_view text);

}  // namespace stageline
