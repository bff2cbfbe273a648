// Two waterfalls side by side, with names that XML has to escape.
#pragma once

#include "tools/report/charts/waterfall.hpp"

namespace stageline::test {

inline report::WaterfallChart small_waterfall() {
  report::WaterfallChart chart;
  chart.title = "two <steps>";
  chart.label = "ms";
  chart.waterfalls = {"a", "b & c"};
  chart.rows = {{"ideal", {{0, 40, "40 ms", "a"}, {0, 50, "50 ms", ""}}},
                {"<cause>", {{40, 60, "+20 ms", ""}, {50, 45, "-5 ms", ""}}},
                {"step", {{0, 60, "60 ms", ""}, {0, 45, "45 ms", ""}}}};
  return chart;
}

}  // namespace stageline::test
