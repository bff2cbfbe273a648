// What `stageline published` prints and writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/published/summary.hpp"
#include "tools/report/svg/options.hpp"

namespace stageline {

/// Figures by source and role: time first, then memory, then what has no prediction and why.
/// `width`: the most columns of a line; 0: any.
std::string published_text(const std::vector<JudgedPoint>& judged, int width = 0);

/// A line for each row: id, model, degrees, what was measured, predicted, and the deviation.
std::string published_rows_text(const std::vector<JudgedPoint>& judged, int width = 0);

/// The page: figures, all rows with links to their sources, assumptions. `points`: the file.
std::string published_markdown(const std::vector<JudgedPoint>& judged, std::string_view points,
                               const std::vector<UnreadRow>& unread = {});

/// How many rows could not be read and are left out, and why, a line each; empty: all were read.
/// `read`: the number of the others.
std::string unread_text(const std::vector<UnreadRow>& unread, std::size_t read, int width = 0);

/// Everything as JSON; keys in tools/published/README.md.
std::string published_json(const std::vector<JudgedPoint>& judged,
                           const std::vector<UnreadRow>& unread = {});

/// Predicted over measured step time on logarithmic axes, a colour for each source, with the
/// diagonal and the lines of ±10 %. Throws UsageError where no row has both.
std::string published_svg(const std::vector<JudgedPoint>& judged,
                          const report::SvgOptions& options = {});

/// "TP 8 · PP 12 · DP 4, 128 × 1".
std::string degrees_text(const Point& point);

}  // namespace stageline
