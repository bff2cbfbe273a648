// Draws characters on a grid, wraps text, and numbers an axis.
#include "tools/report/charts/canvas.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "sim/base/index.hpp"
#include "tools/report/svg/text.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t latin = 26;
// Parallel.
constexpr std::array<std::string_view, letters - latin> capital_greek = {"Γ", "Δ", "Θ", "Λ", "Ξ",
                                                                         "Π", "Σ", "Φ", "Ψ", "Ω"};
constexpr std::array<std::string_view, letters - latin> small_greek = {"γ", "δ", "θ", "λ", "ξ",
                                                                       "π", "σ", "φ", "ψ", "ω"};

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

Canvas::Canvas(int width, int height)
    : columns(width), rows(as_size(height), std::vector<std::string>(as_size(width), " ")) {}

const std::string& Canvas::at(int row, int column) const { return nth(nth(rows, row), column); }

bool Canvas::blank(int row, int column) const { return at(row, column) == " "; }

void Canvas::put(int row, int column, std::string_view character) {
  if (row < 0 || row >= static_cast<int>(rows.size()) || column < 0 || column >= columns) return;
  nth(nth(rows, row), column) = character;
}

void Canvas::write(int row, int column, std::string_view text) {
  while (!text.empty()) {
    std::size_t length = 1;
    while (length < text.size() && continues(text[length])) ++length;
    put(row, column++, text.substr(0, length));
    text.remove_prefix(length);
  }
}

std::string Canvas::line(int row) const {
  std::string out;
  for (const std::string& cell : nth(rows, row)) out += cell;
  return out.erase(out.find_last_not_of(' ') + 1);
}

std::string key_text(const std::vector<std::string>& entries, int columns) {
  std::string out;
  int used = 0;
  for (const std::string& whole : entries) {
    const std::string entry = shortened(whole, as_size(columns));
    const int needed = columns_of(entry);
    if (used > 0) {
      const bool same_line = used + 3 + needed <= columns;
      out += same_line ? "   " : "\n";
      used = same_line ? used + 3 : 0;
    }
    out += entry;
    used += needed;
  }
  return out.empty() ? out : out + "\n";
}

std::string wrapped_text(const std::string& text, int columns) {
  std::string out;
  int used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t blank = std::min(text.find(' ', at), text.size());
    const std::string word = shortened(text.substr(at, blank - at), as_size(columns));
    const int needed = columns_of(word);
    if (used > 0) {
      const bool same_line = used + 1 + needed <= columns;
      out += same_line ? " " : "\n";
      used = same_line ? used + 1 : 0;
    }
    out += word;
    used += needed;
    at = blank + 1;
  }
  return out.empty() ? out : out + "\n";
}

AxisNumbers axis_numbers(const std::vector<int>& at, const std::vector<std::string>& labels,
                         int columns) {
  Canvas canvas(columns, 1);
  AxisNumbers result;
  int free_from = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const int width = columns_of(labels[i]);
    // Shifted a little where it would leave the page; still under its mark.
    const int from = std::max(0, std::min(at[i] - width / 2, columns - width));
    result.fits = result.fits && from >= free_from;
    canvas.write(0, from, labels[i]);
    free_from = from + width + 1;
  }
  result.line = canvas.line(0) + "\n";
  return result;
}

std::string letter(std::size_t number, bool small) {
  if (number < latin) {
    return std::string(1, static_cast<char>((small ? 'a' : 'A') + static_cast<int>(number)));
  }
  return std::string((small ? small_greek : capital_greek).at(number - latin));
}

bool is_letter(std::string_view character) {
  if (character.size() == 1) return std::isalpha(static_cast<unsigned char>(character[0])) != 0;
  const auto is_it = [&](std::string_view one) { return one == character; };
  return std::any_of(capital_greek.begin(), capital_greek.end(), is_it) ||
         std::any_of(small_greek.begin(), small_greek.end(), is_it);
}

}  // namespace stageline::report
