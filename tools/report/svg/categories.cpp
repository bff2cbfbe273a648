// The table of colours of the categories.
#include "tools/report/svg/categories.hpp"

#include <fmt/core.h>

#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

struct CategoryPaint {
  const char* name;   // CSS class
  const char* words;  // in the legend
  const char* light;  // fill in the light theme
  const char* dark;   // fill in the dark theme
};

// Persistent memory is grey and green, the stash blue and yellow, what passes orange and purple;
// neighbours in the stack differ in lightness. Hues as in theme.cpp.
// clang-format off
constexpr std::array<CategoryPaint, memory_categories> category_paints{{
    {"qr", "reserve",                   "url(#stageline-hatch-d)", "url(#stageline-hatch-d)"},
    {"qw", "weights",                   "#5c6776", "#7d8899"},
    {"qv", "older weights",             "#b59ac6", "#8a72a3"},
    {"qg", "gradients of weights",      "#2f8f74", "#2fa284"},
    {"qo", "optimizer state",           "#b3bac4", "#4b5460"},
    {"qs", "stash for W",               "#2f7fb8", "#3f7fac"},
    {"qi", "stash for I",               "#8cc4ea", "#8fcaf2"},
    {"qk", "gradients kept for W",      "#f0ba3c", "#f0bc46"},
    {"qb", "inputs to recompute from",  "#d3e9f8", "#bcdcf3"},
    {"qm", "messages",                  "#d9702a", "#e9803c"},
    {"qc", "communication buffers",     "#a8477f", "#cc79a7"},
    {"qx", "workspace",                 "#f8dd9a", "#b98f3a"},
}};
// clang-format on

std::string rules_of(bool dark) {
  std::string out;
  for (const CategoryPaint& paint : category_paints) {
    out += fmt::format(".stageline .{}{{fill:{}}}", paint.name, dark ? paint.dark : paint.light);
  }
  return out;
}

}  // namespace

std::string_view css_class(MemoryCategory category) { return nth(category_paints, category).name; }
std::string_view words(MemoryCategory category) { return nth(category_paints, category).words; }

std::string category_style(Theme theme) {
  std::string css = rules_of(theme == Theme::dark);
  if (theme == Theme::automatic) {
    css += "@media (prefers-color-scheme:dark){" + rules_of(true) + "}";
  }
  return "<style>" + css + "</style>\n";
}

}  // namespace stageline::report
