// The known name that a mistyped one most likely means.
#pragma once

#include <string>
#include <vector>

namespace stageline {

/// The name in `known` that `name` most likely means; capitals, '-', '_', '.' and blanks count for
/// nothing. Before all others one that begins with `name` (the shortest of several, from three
/// letters on), then the nearest by edit distance (characters inserted, deleted, replaced, or two
/// neighbours exchanged): of equals the one with the most letters in common, then the first. Empty
/// where that differs in more than a third of the longer one (rounded up where both begin with the
/// same letter), and for a number.
std::string nearest(const std::string& name, const std::vector<std::string>& known);

}  // namespace stageline
