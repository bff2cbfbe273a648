// The page elements shared by all charts: head and foot, colours, markers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report/charts/axis.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {

inline constexpr double page_margin = 18;  // px

/// The area of the cells or curves, in px.
struct Plot {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
};

/// Title and subtitle, from the top of the page; of a plain picture the title asked for alone.
Fragment page_head(const std::string& title, const std::string& subtitle,
                   const SvgOptions& options);

/// The whole document: `body` ends at `bottom` px, the footnotes follow below it. `desc` describes
/// the picture in one sentence.
std::string chart_document(const std::string& title, const std::string& desc, std::string body,
                           double bottom, const std::vector<std::string>& footnotes,
                           const SvgOptions& options);

/// A series' marker at a point, with a tooltip unless that is empty; `scale` multiplies its size.
/// Shapes and colours repeat after 7 and 8 inks, so that 56 pairs differ.
std::string marker(std::size_t ink, double x, double y, bool open, double scale,
                   std::string_view tooltip);
/// The marker of a faint series: a small grey dot.
std::string faint_marker(double x, double y, bool open, std::string_view tooltip);

/// The CSS classes of a series' line.
std::string line_classes(std::size_t ink, bool dashed);
std::string faint_line_classes(bool dashed);

}  // namespace stageline::report
