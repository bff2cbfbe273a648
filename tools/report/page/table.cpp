// The data of a table.
#include <fmt/core.h>

#include "tools/base/json.hpp"
#include "tools/report/page/sections.hpp"

namespace stageline::report {

PageSection table_section(std::string title, const Sheet& sheet, const std::vector<PageRow>& rows) {
  Json data;
  data["columns"] = Json::array();
  for (const SheetColumn& column : sheet.columns) {
    data["columns"].push_back({{"title", column.title},
                               {"definition", column.definition},
                               {"left", column.left},
                               {"shown", column.shown}});
  }
  data["rows"] = Json::array();
  for (std::size_t i = 0; i < sheet.rows.size(); ++i) {
    Json cells = Json::array();
    for (const SheetCell& cell : sheet.rows[i]) {
      const std::optional<double>& value = cell.figure.value;
      cells.push_back(
          Json::array({cell.text, value ? Json(*value) : Json(nullptr), cell.figure.exact}));
    }
    data["rows"].push_back({{"id", rows[i].id}, {"note", rows[i].note}, {"cells", cells}});
  }
  return {"table", std::move(title), data.text(), {}};
}

PageSection table_section(std::string title, const Sheet& sheet) {
  std::vector<PageRow> rows;
  for (std::size_t i = 0; i < sheet.rows.size(); ++i) rows.push_back({"", ""});
  return table_section(std::move(title), sheet, rows);
}

}  // namespace stageline::report
