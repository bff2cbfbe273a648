#include "tools/report/text/what_if.hpp"

#include <fmt/core.h>

#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/charts/chart.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/uncertainty.hpp"

namespace stageline::report {
namespace {

constexpr std::size_t coloured_schedules = 6;  // curves of the picture

std::string long_time(double seconds) {
  if (seconds >= 2 * 86400) return fmt::format("{:.1f} days", seconds / 86400);
  if (seconds >= 2 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} s", seconds);
}

std::string failures_sentence(const Failures& failures) {
  const UsefulShare share = useful_share(failures);
  return fmt::format(
      "failures every {}, a checkpoint of {} every {}: {} of the time is useful work (Young's "
      "interval {}, Daly's {})",
      long_time(failures.between), long_time(failures.checkpoint), long_time(share.interval),
      percent(share.useful), long_time(share.young), long_time(share.daly));
}

std::string long_run_sentence(const LongRun& run, double work) {
  return fmt::format(
      "a run of {} of steps takes {} on average with {:.1f} failures, {} of it useful; in 5 % of {} "
      "runs at most {}, in half {}, in 95 % {}",
      long_time(work), long_time(run.mean), run.failures, percent(run.useful), run.scenarios,
      long_time(run.p5), long_time(run.p50), long_time(run.p95));
}

}  // namespace

std::vector<std::string> what_if_advice(const answers::WhatIfQuestion& question,
                                        const answers::WhatIfAnswer& found) {
  std::vector<std::string> advice{uncertainty_sentence(found.rows, found.order, question.by)};
  if (question.failures) advice.push_back(failures_sentence(*question.failures));
  if (found.run) advice.push_back(long_run_sentence(*found.run, *question.run));
  return advice;
}

std::string what_if_text(const answers::WhatIfAnswer& found, const std::vector<std::string>& advice,
                         int width, bool quiet) {
  std::string text;
  if (!quiet) {
    text = wrapped(heading(found.setting, found.best().row.asked) +
                       fmt::format("{} scenarios\n\n", found.scenarios()),
                   width);
  }
  text += uncertainty_table(found.rows, found.order, width);
  std::string lines;
  for (const UncertainRow& row : found.rows) {
    if (row.steps) continue;
    lines += fmt::format("{}: not possible: {}\n", row.row.schedule, row.row.why_not);
  }
  for (const std::string& sentence : advice) lines += fmt::format("→ {}\n", sentence);
  return text + wrapped(lines, width);
}

std::string what_if_svg(const answers::WhatIfAnswer& found, const std::vector<std::string>& said,
                        const SvgOptions& options) {
  Chart chart = uncertainty_chart(found.rows, found.order, coloured_schedules);
  chart.title = "Distribution of the step · " + found.setting.model.name;
  chart.subtitle = fmt::format("{} scenarios", found.scenarios());
  for (const std::string& note : said) chart.footnotes.push_back("Note: " + note + ".");
  return chart_svg(chart, options);
}

}  // namespace stageline::report
