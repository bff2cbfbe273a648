// Draws bars and notches on the boxes of a compute lane.
#include "tools/report/timeline/svg_marks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "sim/base/index.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/svg/theme.hpp"

namespace stageline::report {
namespace {

constexpr double notch_width = 1.2;  // px
constexpr double notch_pitch = 2.8;  // px
constexpr double notch_inset = 2;    // px, from the left edge of the box

// Rectangles by the ink of their box: one path each.
class InkPaths {
 public:
  void add(Tone tone, double x, double y, double width, double height) {
    const std::string across = svg_number(width);
    data_[ink_on(tone)] += fmt::format("M{} {}h{}v{}h-{}z", svg_number(x), svg_number(y), across,
                                       svg_number(height), across);
  }
  std::string text(std::string_view name) const {
    std::string out;
    for (const auto& [ink, data] : data_) {
      out += fmt::format("<path class=\"{} {}\" d=\"{}\"/>\n", ink, name, data);
    }
    return out;
  }

 private:
  std::map<std::string_view, std::string> data_;
};

bool has_bar(const Box& box) {
  const Tone tone = static_cast<Tone>(box.tone);
  return box.piece >= 0 && tone >= Tone::pale_forward && tone <= Tone::pale_update;
}

int notches_on(const Box& box, const std::vector<int>& counts) {
  return box.piece < 0 ? 0 : nth(counts, box.piece);
}

}  // namespace

bool have_room_for_notches(const Boxes& boxes, const std::vector<int>& counts) {
  return std::all_of(boxes.boxes.begin(), boxes.boxes.end(), [&](const Box& box) {
    const int count = notches_on(box, counts);
    return count == 0 || notch_inset + count * notch_pitch <= box.width;
  });
}

bool has_bars(const Boxes& boxes) {
  return std::any_of(boxes.boxes.begin(), boxes.boxes.end(), has_bar);
}

std::string bars(const Boxes& boxes, double top, double height) {
  InkPaths paths;
  for (const Box& box : boxes.boxes) {
    if (!has_bar(box)) continue;
    // Above the number, and clear of the edge: a dark bar at the edge would end the box on a dark
    // ground.
    const double high = box.height * height;
    const double side = box.width > 6 ? 1.5 : 0;
    paths.add(static_cast<Tone>(box.tone), box.x + side, top + box.top * height + 0.09 * high,
              box.width - 2 * side, std::clamp(0.08 * high, 0.7, 2.0));
  }
  return paths.text("bar");
}

std::string notches(const Boxes& boxes, const std::vector<int>& counts, double top, double height) {
  InkPaths paths;
  for (const Box& box : boxes.boxes) {
    const int count = notches_on(box, counts);
    for (int i = 0; i < count; ++i) {
      paths.add(static_cast<Tone>(box.tone), box.x + notch_inset + i * notch_pitch,
                top + box.top * height, notch_width, 0.22 * box.height * height);
    }
  }
  return paths.text("notch");
}

}  // namespace stageline::report
