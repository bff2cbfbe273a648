// The page of a comparison: ranking, memory against time, table, diagrams, causes, distributions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/report/page/page.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/report/text/waterfall.hpp"
#include "tools/study/whatif/sensitivity.hpp"

namespace stageline::report {

/// What the page is made of. `rows` and all that refers to them must outlive the call.
struct ComparisonReport {
  const Setting& setting;
  const std::vector<Row>& rows;
  const std::vector<RankedRows>& orders;  // synchronous, asynchronous
  ComparisonView view;
  std::string question;                     // lines: model, devices, micro-batches, cut
  std::vector<std::string> commands{};      // by row, that reproduce it
  std::vector<std::string> advice{};        // sentences on the whole
  std::vector<std::string> not_possible{};  // sentences on rows without outcome
  std::span<const Case> drawn{};            // with their outcomes: the diagrams
  std::span<const Outcome> outcomes{};
  std::vector<NamedWaterfall> waterfalls{};  // at most two
  const Sensitivity* sensitivity = nullptr;  // of the first that is drawn
  std::vector<std::string> notes{};
};

Page comparison_page(const ComparisonReport& report);

/// The row's section of the page, in words that a reader clicks: "row3".
std::string page_row_id(std::size_t row);

}  // namespace stageline::report
