// Numbers on the boxes: micro-batches, and stages where a device has several.
#include <fmt/core.h>

#include <algorithm>

#include "sim/index.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline {
namespace {

constexpr double stage_size = 0.7;  // stage number relative to micro-batch number

double label_width(const Span& span, bool with_stage, double size) {
  const std::string number =
      span.op.kind == OpKind::update ? "U" : std::to_string(span.op.microbatch);
  return text_width(number, size) +
         (with_stage ? text_width(std::to_string(span.op.stage), stage_size * size) : 0);
}

}  // namespace

std::array<double, op_kinds> label_sizes(const Rows& rows, const Timeline& timeline,
                                         double height) {
  constexpr std::array<double, 5> sizes{11, 10, 9, 8, 7};
  std::array<std::array<std::size_t, sizes.size()>, op_kinds> fitting{};
  std::array<std::size_t, op_kinds> all{};
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    const std::size_t lane = lane_index(device, static_cast<int>(LaneKind::compute));
    for (const Box& box : rows.lanes[lane].boxes) {
      if (box.piece < 0) continue;
      const Span& span = nth(timeline.lanes[lane], box.piece);
      const auto kind = as_size(span.op.kind);
      ++all[kind];
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const bool fits = label_width(span, rows.stages[device] > 1, sizes[i]) + 2 <= box.width &&
                          sizes[i] <= 0.85 * height * box.height;
        fitting[kind][i] += fits ? 1 : 0;
      }
    }
  }
  std::array<double, op_kinds> result{};
  double common = sizes.front();
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    for (std::size_t i = 0; i < sizes.size() && result[kind] == 0; ++i) {
      if (all[kind] > 0 && 10 * fitting[kind][i] >= 8 * all[kind]) result[kind] = sizes[i];
    }
    if (result[kind] > 0) common = std::min(common, result[kind]);
  }
  for (double& size : result) size = std::min(size, common);
  return result;
}

std::string labels(const Boxes& boxes, const Spans& spans, bool with_stage,
                   const std::array<double, op_kinds>& sizes, double top, double height) {
  std::string out;
  for (const Box& box : boxes.boxes) {
    if (box.piece < 0) continue;
    const Span& span = nth(spans, box.piece);
    const double size = nth(sizes, span.op.kind);
    if (size == 0 || label_width(span, with_stage, size) + 2 > box.width) continue;
    const double middle = top + (box.top + box.height / 2) * height;
    std::string text = span.op.kind == OpKind::update ? "U" : std::to_string(span.op.microbatch);
    if (with_stage) {
      text += fmt::format("<tspan dy=\"{}\" font-size=\"{}\">{}</tspan>", svg_number(0.2 * size),
                          svg_number(stage_size * size), span.op.stage);
    }
    out += fmt::format("<text class=\"{} n\" x=\"{}\" y=\"{}\" font-size=\"{}\">{}</text>\n",
                       ink_on(static_cast<Tone>(box.tone)), svg_number(box.x + box.width / 2),
                       svg_number(middle + 0.36 * size), svg_number(size), text);
  }
  return out;
}

}  // namespace stageline
