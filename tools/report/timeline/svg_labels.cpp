// Numbers on the boxes: micro-batches, and stages where a device has several.
#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline {
namespace {

constexpr std::array<double, 6> sizes{11, 10, 9, 8, 7, 6};  // px
constexpr double stage_size = 0.7;                          // relative to the micro-batch's number

std::string number_of(const Span& span) {
  return span.op.kind == OpKind::update ? "U" : std::to_string(span.op.microbatch);
}

// Whether a label of that size is within its box. A number alone has no descender; a stage's number
// hangs below the base line.
bool fits(const Span& span, const Box& box, bool with_stage, double size, double height) {
  const double width =
      text_width(number_of(span), size) +
      (with_stage ? text_width(std::to_string(span.op.stage), stage_size * size) : 0);
  const double padding = size > sizes.back() ? 1 : 0.3;  // px, at either side
  return width + 2 * padding <= box.width &&
         size <= (with_stage ? 0.72 : 0.85) * height * box.height;
}

struct Label {
  double size = 0;  // px; 0: none fits
  bool with_stage = false;
};

Label label_of(const Span& span, const Box& box, bool with_stage, double largest, double height) {
  for (const bool stage : {true, false}) {
    if (stage && !with_stage) continue;
    for (const double size : sizes) {
      if (size <= largest && fits(span, box, stage, size, height)) return {size, stage};
    }
  }
  return {};
}

}  // namespace

double label_size(const Rows& rows, const Timeline& timeline, double height) {
  for (const bool stages : {true, false}) {
    std::array<std::size_t, sizes.size()> fitting{};
    for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
      const std::size_t lane = lane_index(device, static_cast<int>(LaneKind::compute));
      for (const Box& box : rows.lanes[lane].boxes) {
        if (box.piece < 0) continue;
        const Span& span = nth(timeline.lanes[lane], box.piece);
        const bool with_stage = stages && rows.stages[device] > 1;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          fitting[i] += fits(span, box, with_stage, sizes[i], height) ? 1 : 0;
        }
      }
    }
    // Most of those that fit at all.
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (fitting[i] > 0 && 10 * fitting[i] >= 8 * fitting.back()) return sizes[i];
    }
  }
  return sizes.back();
}

std::string labels(const Boxes& boxes, const Spans& spans, bool with_stage, double size, double top,
                   double height) {
  std::string out;
  for (const Box& box : boxes.boxes) {
    if (box.piece < 0) continue;
    const Span& span = nth(spans, box.piece);
    const Label label = label_of(span, box, with_stage, size, height);
    if (label.size == 0) continue;
    const double middle = top + (box.top + box.height / 2) * height;
    // A stage's number hangs below the base line, which rises by half of that.
    const double hang = label.with_stage ? 0.2 * label.size : 0;
    std::string text = number_of(span);
    if (label.with_stage) {
      text += fmt::format("<tspan dy=\"{}\" font-size=\"{}\">{}</tspan>", svg_number(hang),
                          svg_number(stage_size * label.size), span.op.stage);
    }
    out += fmt::format("<text class=\"{} n\" x=\"{}\" y=\"{}\" font-size=\"{}\">{}</text>\n",
                       ink_on(static_cast<Tone>(box.tone)), svg_number(box.x + box.width / 2),
                       svg_number(middle + 0.36 * label.size - hang / 2), svg_number(label.size),
                       text);
  }
  return out;
}

}  // namespace stageline
