// Finds the nearest name: by its letters, its beginning, its edit distance.
#include "sim/base/nearest.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <numeric>

#include "sim/base/letters.hpp"

namespace stageline {
namespace {

constexpr std::size_t shortest_prefix = 3;  // of several names: two letters begin too many

// Edits that turn one into the other; two neighbours that change places are one edit.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1);  // the row before the last
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j - 1] + (same ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last.back();
}

// Without what is written in different ways: "Micro-batches" and "micro_batches" are
// "microbatches".
std::string letters_of(const std::string& name) {
  std::string letters;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ' || c == '.') continue;
    letters += small_letter(c);
  }
  return letters;
}

std::size_t letters_in_common(const std::string& a, const std::string& b) {
  std::array<std::size_t, UCHAR_MAX + 1> left{};
  for (const char c : a) ++left[static_cast<unsigned char>(c)];
  std::size_t common = 0;
  for (const char c : b) {
    std::size_t& count = left[static_cast<unsigned char>(c)];
    if (count == 0) continue;
    --count;
    ++common;
  }
  return common;
}

// The shortest of those that begin so; one of several only where the beginning says enough.
std::string begun(const std::string& letters, const std::vector<std::string>& known) {
  const std::string* shortest = nullptr;
  int count = 0;
  for (const std::string& candidate : known) {
    if (!letters_of(candidate).starts_with(letters)) continue;
    ++count;
    if (shortest == nullptr || candidate.size() < shortest->size()) shortest = &candidate;
  }
  const bool clear = count == 1 ? letters.size() > 1 : letters.size() >= shortest_prefix;
  return shortest != nullptr && clear ? *shortest : "";
}

}  // namespace

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  const std::string letters = letters_of(name);
  if (letters.find_first_not_of("+0123456789") == std::string::npos) return "";
  for (const std::string& candidate : known) {
    if (letters_of(candidate) == letters) return candidate;
  }
  if (std::string whole = begun(letters, known); !whole.empty()) return whole;
  std::string found;
  std::size_t best = 0;
  std::size_t common = 0;
  for (const std::string& candidate : known) {
    const std::string other = letters_of(candidate);
    const std::size_t longer = std::max(letters.size(), other.size());
    const std::size_t most = (longer + (letters[0] == other[0] ? 2 : 0)) / 3;
    // At least the difference of the lengths: a name of kilobytes takes no time.
    if (longer - std::min(letters.size(), other.size()) > most) continue;
    const std::size_t distance = edit_distance(letters, other);
    if (distance > most || (!found.empty() && distance > best)) continue;
    const std::size_t alike = letters_in_common(letters, other);
    if (!found.empty() && distance == best && alike <= common) continue;
    best = distance;
    common = alike;
    found = candidate;
  }
  return found;
}

}  // namespace stageline
