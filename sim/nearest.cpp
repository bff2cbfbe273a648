// Finds the nearest name by edit distance.
#include "sim/nearest.hpp"

#include <algorithm>
#include <numeric>

namespace stageline {
namespace {

// Levenshtein distance, one row at a time.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  std::size_t best = name.size() / 2 + 2;  // a larger distance is no typo
  std::string found;
  for (const std::string& candidate : known) {
    // At least the difference of the lengths: a name of kilobytes takes no time.
    if (name.size() >= best + candidate.size() || candidate.size() >= best + name.size()) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace stageline
