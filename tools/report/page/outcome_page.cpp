// Puts the sections together.
#include "tools/report/page/outcome_page.hpp"

#include "tools/report/drawing_of.hpp"
#include "tools/report/page/diagram.hpp"
#include "tools/report/page/sections.hpp"
#include "tools/report/text/waterfall.hpp"

namespace stageline::report {

Page page_of(const Setting& setting, std::span<const Case> asked,
             std::span<const Outcome> outcomes) {
  std::vector<DiagramRun> runs;
  Page page;
  if (outcomes.size() == 1) {
    runs.push_back({drawing_of(setting, asked.front(), outcomes.front()), &outcomes.front()});
    Drawing& only = runs.front().drawing;
    page = {only.title, only.subtitle, only.footnotes, {}};
    if (!only.rates.empty()) page.subtitle += " · " + only.rates;
    only.subtitle.clear();
  } else {
    Drawings drawings = drawings_of(setting, asked, outcomes);
    page = {drawings.title, drawings.subtitle, drawings.runs.front().footnotes, {}};
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      runs.push_back({std::move(drawings.runs[i]), &outcomes[i]});
    }
  }
  page.sections.push_back(diagram_section("What runs when", runs));
  return page;
}

Page simulation_page(const answers::Simulation& found) {
  Page page = page_of(found.setting, {&found.asked, 1}, {&found.outcome, 1});
  if (!found.waterfall) return page;
  page.sections.push_back(waterfall_section(
      "Where the step's time goes", waterfall_chart({{found.outcome.schedule, *found.waterfall}})));
  return page;
}

}  // namespace stageline::report
