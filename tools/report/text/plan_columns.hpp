// The columns of a plan: title, definition, words and figure of each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/base/table.hpp"
#include "tools/planner/planner.hpp"
#include "tools/report/text/sheet.hpp"

namespace stageline {

// What the cells of a row show.
struct PlanRow {
  const PlanPoint* point;
  std::size_t place;  // in the front
  const Plan* plan;
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

/// "tp·pp·dp", with the other ranks that the front has; the title of the column of ranks.
std::string degrees_title(const Plan& plan);
bool is_degrees(const PlanColumn& column);

}  // namespace stageline
