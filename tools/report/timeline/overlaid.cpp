// Interleaves the rows of two timelines.
#include "tools/report/timeline/overlaid.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace stageline::report {

Drawing overlaid(const Timeline& above, const std::string& above_word, const Timeline& below,
                 const std::string& below_word, const std::vector<std::string>& names) {
  Drawing drawing;
  const auto add = [&](const Timeline& timeline, std::size_t device, const std::string& word) {
    if (device >= timeline.devices.size()) return;
    const std::string& name = device < names.size() ? names[device] : timeline.devices[device];
    drawing.timeline.devices.push_back(fmt::format("{} {}", name, word));
    drawing.ends.push_back(makespan(timeline));
    for (std::size_t lane = 0; lane < lane_kinds; ++lane) {
      drawing.timeline.lanes.push_back(timeline.lanes[device * lane_kinds + lane]);
    }
  };
  const std::size_t devices = std::max(above.devices.size(), below.devices.size());
  for (std::size_t device = 0; device < devices; ++device) {
    add(above, device, above_word);
    add(below, device, below_word);
  }
  return drawing;
}

}  // namespace stageline::report
