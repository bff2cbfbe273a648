// Colours and words of the categories of memory.
#pragma once

#include <string>
#include <string_view>

#include "sim/analysis/memory_categories.hpp"
#include "tools/report/svg/options.hpp"

namespace stageline::report {

/// The CSS class ("qw"), and the name in the legend ("weights").
std::string_view css_class(MemoryCategory category);
std::string_view words(MemoryCategory category);

/// The <style> element of these classes, beside style_sheet(), whose hatches it uses.
std::string category_style(Theme theme);

}  // namespace stageline::report
