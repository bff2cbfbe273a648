// The columns of a plan: title, definition, words and figure of each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/base/table.hpp"
#include "tools/planner/planner.hpp"
#include "tools/report/text/sheet.hpp"

namespace stageline::report {

// What the cells of a row show.
struct PlanRow {
  const planner::PlanPoint* point;
  std::size_t place;  // in the front
  const planner::Plan* plan;
  const Model* model;
};

struct PlanColumn {
  Column column;
  const char* definition;
  std::string (*cell)(const PlanRow&);
  CellFigure (*figure)(const PlanRow&) = nullptr;  // null: of names
  /// Shown where this holds of any row; null: always.
  bool (*matters)(const PlanRow&) = nullptr;
};

/// In the order of the table.
const std::vector<PlanColumn>& plan_columns();

/// The column with the title that it has in this plan: "tp·pp·dp" with the other ranks that the
/// front has, "peak of 82.52 GB" where all its points have that memory.
Column titled(const PlanColumn& column, const planner::Plan& plan);

}  // namespace stageline::report
