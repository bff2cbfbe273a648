// The data of the points, and which of them are on the front.
#include <algorithm>

#include "tools/report/page/page_json.hpp"

namespace stageline::report {

void mark_front(std::vector<ScatterPoint>& points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    ScatterPoint& point = points[i];
    const auto beats = [&](const ScatterPoint& other) {
      if (other.fit == Fit::no || other.step > point.step || other.peak > point.peak) return false;
      const bool equal = other.step == point.step && other.peak == point.peak;
      return !equal || &other < &point;
    };
    point.front = point.fit != Fit::no && std::none_of(points.begin(), points.end(), beats);
  }
}

PageSection scatter_section(std::string title, ScatterChart chart) {
  Json data;
  data["x"] = {{"title", "step"},
               {"definition", "Steady state: from the end of one step to the end of the next"},
               {"unit", "ps"}};
  data["y"] = {
      {"title", "peak memory"}, {"definition", "The highest peak of any device"}, {"unit", "B"}};
  data["front_words"] = "Pareto front: nothing that fits is faster with no more memory";
  data["limit"] = page_line(chart.limit);
  data["bound"] = page_line(chart.bound);
  data["series"] = Json::array();
  for (ScatterSeries& series : chart.series) {
    mark_front(series.points);
    Json points = Json::array();
    for (const ScatterPoint& point : series.points) {
      points.push_back({{"id", point.row.id},
                        {"note", point.row.note},
                        {"name", point.name},
                        {"x", point.step.count()},
                        {"x_text", print(point.step)},
                        {"y", point.peak.count},
                        {"y_text", print(point.peak)},
                        {"fits", name(point.fit)},
                        {"front", point.front},
                        {"flags", point.command}});
    }
    const bool first = data["series"].size() == 0;
    data["series"].push_back({{"name", series.name},
                              {"look", first ? "circle" : "diamond"},
                              {"points", std::move(points)}});
  }
  return {"scatter", std::move(title), data.text(), {}};
}

}  // namespace stageline::report
