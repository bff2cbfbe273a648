#include "tools/report/text/waterfall.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/base/table.hpp"
#include "tools/base/text.hpp"

namespace stageline::report {
namespace {

constexpr int most_bar = 40;  // columns of the whole step
constexpr int least_bar_columns = 10;
constexpr int beside_bar = 44;  // columns: the name, the time and the share

double ratio_of(Time part, Time whole) {
  return whole > Time{} ? to_seconds(part) / to_seconds(whole) : 0;
}

Json causes_json(const TimeByCause& by) {
  Json causes = Json::array();
  for (std::size_t cause = 0; cause < by.size(); ++cause) {
    Json row{{"cause", name(static_cast<StepCause>(cause))}};
    put_time(row, "time", by[cause]);
    causes.push_back(row);
  }
  return causes;
}

}  // namespace

std::string bar_between(Time from, Time to, Time whole, int columns) {
  const auto at = [&](Time time) {
    return std::clamp(static_cast<int>(std::lround(ratio_of(time, whole) * columns)), 0, columns);
  };
  const int begin = at(std::min(from, to));
  const int end = std::max(at(std::max(from, to)), std::min(begin + 1, columns));
  std::string text(static_cast<std::size_t>(begin), ' ');
  for (int column = begin; column < end; ++column) text += "█";
  return text;
}

std::string waterfall_table(const Waterfall& waterfall, int width) {
  const int columns = width == 0 ? most_bar : std::min(most_bar, width - beside_bar);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string_view name, Time from, Time to, bool ends) {
    const Time time = to - from;
    rows.push_back({std::string(name), ends ? print(time) : signed_time(time),
                    percent(ratio_of(time, waterfall.step))});
    if (columns >= least_bar_columns)
      rows.back().push_back(bar_between(from, to, waterfall.step, columns));
  };
  add("ideal", Time{}, waterfall.ideal, true);
  Time until = waterfall.ideal;
  std::size_t most = 0;
  for (std::size_t cause = 0; cause < waterfall.by.size(); ++cause) {
    const Time time = waterfall.by[cause];
    if (time > waterfall.by[most]) most = cause;
    if (time == Time{}) continue;
    add(name(static_cast<StepCause>(cause)), until, until + time, false);
    until += time;
  }
  add("step", Time{}, waterfall.step, true);
  std::vector<Column> titles{{"cause", true}, {"time"}, {"of the step"}};
  if (columns >= least_bar_columns) titles.push_back({"", true});
  std::string text = table(titles, rows, width);
  if (waterfall.by[most] <= Time{}) return text + "→ nothing is lost: the step is all work\n";
  return text + fmt::format("→ most is lost by {}: {} of the step\n",
                            name(static_cast<StepCause>(most)),
                            percent(ratio_of(waterfall.by[most], waterfall.step)));
}

std::string device_waterfall_table(const Waterfall& waterfall, int width) {
  const auto of = [](const DeviceWaterfall& device, std::size_t cause) {
    return device.busy[cause] + device.idle[cause];
  };
  std::vector<Column> titles{{"device", true}, {"work"}};
  std::vector<std::size_t> shown;
  for (std::size_t cause = 0; cause < waterfall.by.size(); ++cause) {
    const bool any =
        std::any_of(waterfall.device.begin(), waterfall.device.end(),
                    [&](const DeviceWaterfall& device) { return of(device, cause) != Time{}; });
    if (!any) continue;
    shown.push_back(cause);
    titles.push_back({std::string(name(static_cast<StepCause>(cause)))});
  }
  titles.push_back({"step"});
  std::vector<std::vector<std::string>> rows;
  for (const DeviceWaterfall& device : waterfall.device) {
    rows.push_back({device.name, print(device.work)});
    for (const std::size_t cause : shown) rows.back().push_back(signed_time(of(device, cause)));
    rows.back().push_back(print(waterfall.step));
  }
  return table(titles, rows, width);
}

std::string shapley_note(const Waterfall& waterfall) {
  if (waterfall.order == CauseOrder::fixed) return "";
  return fmt::format(
      "causes are Shapley values: the mean of what the step gets shorter by without a cause, over "
      "{} {} in which causes can be removed",
      waterfall.orders, waterfall.orders == 1 ? "order" : "orders");
}

Json waterfall_json(const Waterfall& waterfall) {
  Json result;
  put_time(result, "step", waterfall.step);
  put_time(result, "ideal", waterfall.ideal);
  result["order"] = waterfall.order == CauseOrder::fixed ? "fixed" : "shapley";
  result["orders"] = waterfall.orders;
  result["causes"] = causes_json(waterfall.by);
  result["devices"] = Json::array();
  for (const DeviceWaterfall& device : waterfall.device) {
    Json item{{"name", device.name}};
    put_time(item, "work", device.work);
    item["causes"] = Json::array();
    for (std::size_t cause = 0; cause < device.busy.size(); ++cause) {
      if (device.busy[cause] == Time{} && device.idle[cause] == Time{}) continue;
      Json part{{"cause", name(static_cast<StepCause>(cause))}};
      put_time(part, "busy", device.busy[cause]);
      put_time(part, "idle", device.idle[cause]);
      item["causes"].push_back(part);
    }
    result["devices"].push_back(item);
  }
  return result;
}

}  // namespace stageline::report
