// The pages of whatif, sensitivity, plan and overlay.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/planned.hpp"
#include "tools/compare/overlay.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/planner/planner.hpp"
#include "tools/report/page/page.hpp"
#include "tools/report/text/plan.hpp"
#include "tools/study/whatif/sensitivity.hpp"

namespace stageline::report {

/// Words around an answer, each a sentence or a line.
struct PageWords {
  std::string heading;  // lines; the last one is the subtitle
  std::vector<std::string> advice{};
  std::vector<std::string> notes{};
};

/// Title, subtitle, paragraphs and footnotes; no sections but those of the words.
Page page_with(const std::string& title, const PageWords& words);
/// Adds "Note: …." as footnotes, each once.
void add_notes(Page& page, const std::vector<std::string>& notes);

/// Distributions of the rows in `order`.
Page uncertainty_page(const std::string& model, const std::vector<UncertainRow>& rows,
                      const std::vector<std::size_t>& order, const PageWords& words);

/// The tornado of the first `most` levers, and all of them as a table.
Page sensitivity_page(const std::string& model, const Outcome& outcome, const Sensitivity& found,
                      std::size_t most, const PageWords& words);

/// The front, and where it is drawn the recommended point. `said`: the notes.
Page plan_page(const answers::PlanAnswer& found, const PlanView& view,
               const std::vector<std::string>& said);

/// Both timelines on one axis, and all ops that both have.
Page overlay_page(const Overlay& overlay);

}  // namespace stageline::report
