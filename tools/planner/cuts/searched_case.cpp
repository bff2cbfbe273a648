#include "tools/planner/cuts/searched_case.hpp"

#include <string>
#include <utility>

#include "tools/planner/cuts/cut_search.hpp"
#include "tools/planner/cuts/device_order.hpp"

namespace stageline::planner {

// The order is that of the balanced cut.
Case searched_case(const SettingRequest& request, const Setting& setting, const ScheduleSpec& spec,
                   int devices) {
  Case asked = make_case(request, setting, spec, devices);
  if (request.device_order == DeviceOrdering::search) {
    const std::string partition = asked.partition;
    if (is_simulated(partition)) asked.partition = "balanced";
    if (setting.elsewhere && !asked.program) {
      Case other = make_case(request, *setting.elsewhere, spec, devices);
      std::swap(asked.ranked, other.ranked);
      std::swap(asked.cluster, other.cluster);
      Case there = with_searched_order(asked);
      asked.ranked = std::move(other.ranked);
      asked.cluster = std::move(other.cluster);
      asked =
          better_placed(with_searched_order(std::move(asked)), "segment", std::move(there), "fill");
    } else {
      asked = with_searched_order(std::move(asked));
    }
    asked.partition = partition;
  }
  return with_searched_cut(std::move(asked));
}

}  // namespace stageline::planner
