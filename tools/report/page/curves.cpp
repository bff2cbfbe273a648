// The data of a chart's curves; faint ones stay grey on the page, too.
#include <fmt/core.h>

#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/report/page/page_json.hpp"

namespace stageline::report {
namespace {

// Colours of charts.css that are not grey.
constexpr std::size_t most_inks = 5;

Json axis_json(const ChartAxis& axis) {
  return {{"title", axis.label}, {"unit", axis.unit}, {"whole", axis.whole}};
}

}  // namespace

PageSection curves_section(std::string title, Chart chart) {
  highlight_best(chart, most_inks);
  Json data;
  data["x"] = axis_json(chart.x);
  data["y"] = axis_json(chart.y);
  data["lines"] = Json::array();
  for (const ReferenceLine& line : chart.horizontal) {
    data["lines"].push_back({{"value", line.at}, {"words", line.label}});
  }
  data["series"] = Json::array();
  std::size_t inks = 0;
  for (const Series& series : chart.series) {
    Json points = Json::array();
    for (const ChartPoint& point : series.points) {
      points.push_back({{"x", point.x},
                        {"y", point.y ? Json(*point.y) : Json(nullptr)},
                        {"y_text", point.y ? fmt::format("{:.2f}{}", *point.y, chart.y.unit)
                                           : std::string("not possible")},
                        {"open", point.open}});
    }
    const bool grey = series.faint || inks == most_inks;
    data["series"].push_back({{"name", series.name},
                              {"ink", grey ? Json(nullptr) : Json(inks)},
                              {"points", std::move(points)}});
    if (!grey) ++inks;
  }
  return {"curves", std::move(title), data.text(), {}};
}

}  // namespace stageline::report
