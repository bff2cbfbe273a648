#include "tools/report/page/compared_page.hpp"

#include <utility>

#include "tools/report/page/comparison_page.hpp"
#include "tools/report/text/compared.hpp"

namespace stageline::report {

Page compared_page(const answers::Comparison& found, const ComparisonView& view,
                   std::vector<std::string> commands, std::vector<std::string> said) {
  ComparisonReport report{found.setting, found.rows, found.orders, view, compared_heading(found)};
  report.commands = std::move(commands);
  if (!found.alone.empty()) report.advice.push_back(found.alone);
  for (const std::string& sentence : found.ways.sentences) report.advice.push_back(sentence);
  for (const Impossible& reason : impossible_rows(found.rows)) {
    report.not_possible.push_back(reason.sentence(found.sweep()));
  }
  report.drawn = found.drawn;
  report.outcomes = found.outcomes;
  report.waterfalls = found.waterfalls;
  if (found.sensitivity) report.sensitivity = &*found.sensitivity;
  report.notes = std::move(said);
  return comparison_page(report);
}

}  // namespace stageline::report
