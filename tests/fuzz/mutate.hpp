// Mutations that keep the form of an input, so that readers get beyond its first byte.
#pragma once

#include <string>

namespace stageline::fuzz {

/// Up to four times: a value of a JSON text left out, doubled, exchanged for another of the same
/// text or for one of a few (0, -1, 1e308, null, [], …), or a number changed. Any text is taken.
std::string mutate_json(const std::string& text, unsigned seed);

/// The same with lines, words and numbers of a text.
std::string mutate_text(const std::string& text, unsigned seed);

}  // namespace stageline::fuzz
