// The text of a layout of Megatron; megatron.hpp has the letters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stageline {

/// Without blanks at its ends.
std::string trimmed_layout(std::string_view text);

/// Whether the text is meant as a layout: it has a |, or a layout's letters alone and begins with
/// E.
bool looks_like_megatron(std::string_view text);

/// The stages, written out: "Et*2|tL" is "Ett", "tL". Throws UsageError, with the column, unless it
/// is one E, then t, then m, then one L, and neither the first nor the last stage is empty.
std::vector<std::string> parse_megatron(std::string_view text);

}  // namespace stageline
