// Puts the sections together.
#include "tools/report/page/outcome_page.hpp"

#include "tools/report/drawing_of.hpp"

namespace stageline {

Page page_of(const Setting& setting, const std::vector<Case>& asked,
             const std::vector<Outcome>& outcomes) {
  const Drawings drawings = drawings_of(setting, asked, outcomes);
  Page page{drawings.title, drawings.subtitle, drawings.runs.front().footnotes, {}};
  for (const Drawing& run : drawings.runs) {
    page.sections.push_back(text_section(run.title, {run.subtitle}));
  }
  return page;
}

}  // namespace stageline
