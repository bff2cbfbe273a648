// Numbers on the boxes: micro-batches, and stages where a device has several.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/report/timeline/svg_page.hpp"

namespace stageline::report {
namespace {

constexpr std::array<double, 6> sizes{11, 10, 9, 8, 7, 6};  // px
constexpr double stage_size = 0.7;                          // relative to the micro-batch's number

// A box that may have a label.
struct Labelled {
  const Box* box;
  const Span* span;
  std::string number;
  std::string stage;
};

// Whether a label of that size is within its box. A number alone has no descender; a stage's number
// hangs below the base line.
bool fits(const Labelled& one, bool with_stage, double size, double height) {
  const double width =
      text_width(one.number, size) + (with_stage ? text_width(one.stage, stage_size * size) : 0);
  const double padding = size > sizes.back() ? 1 : 0.3;  // px, at either side
  return width + 2 * padding <= one.box->width &&
         size <= (with_stage ? 0.72 : 0.85) * height * one.box->height;
}

// Boxes at the edge of a window may show little of their op, and none decides on the others.
bool is_cut(const Labelled& one, const TimeScale& scale) {
  return one.span->start < scale.start || one.span->end > scale.end;
}

// All labels of a group have one size, and all have a stage or none has.
struct LabelForm {
  double size = 0;  // px; 0: none fits
  bool with_stage = false;
};

LabelForm form_of(const std::vector<Labelled>& group, const LabelRule& rule) {
  for (const bool stage : {true, false}) {
    if (stage && !rule.with_stage) continue;
    for (const double size : sizes) {
      if (size > rule.size) continue;
      const bool all = std::all_of(group.begin(), group.end(), [&](const Labelled& one) {
        return is_cut(one, *rule.scale) || fits(one, stage, size, rule.height);
      });
      if (all) return {size, stage};
    }
  }
  return {};
}

// Ops of one kind whose boxes are about as wide: the width is that power of 2, in px.
using GroupKey = std::pair<OpKind, int>;

// By group: a number on every box, or on every eighth micro-batch where not all have room.
std::map<GroupKey, std::vector<Labelled>> groups_of(const Boxes& boxes, const Spans& spans,
                                                    const LabelRule& rule) {
  std::map<GroupKey, std::vector<Labelled>> groups;
  for (const Box& box : boxes.boxes) {
    if (box.piece < 0) continue;
    const Span& span = nth(spans, box.piece);
    Labelled one{&box, &span, rule.numbers->of(rule.device, span.op),
                 rule.numbers->of_stage(span.op)};
    if (!one.number.empty())
      groups[{span.op.kind, std::ilogb(box.width)}].push_back(std::move(one));
  }
  return groups;
}

std::string label_text(const Labelled& one, const LabelForm& form, const LabelRule& rule) {
  const double middle = rule.top + (one.box->top + one.box->height / 2) * rule.height;
  // A stage's number hangs below the base line, which rises by half of that.
  const double hang = form.with_stage ? 0.2 * form.size : 0;
  std::string text = one.number;
  if (form.with_stage) {
    text += fmt::format("<tspan dy=\"{}\" font-size=\"{}\">{}</tspan>", svg_number(hang),
                        svg_number(stage_size * form.size), one.stage);
  }
  return fmt::format("<text class=\"{} n\" x=\"{}\" y=\"{}\" font-size=\"{}\">{}</text>\n",
                     ink_on(static_cast<Tone>(one.box->tone)),
                     svg_number(one.box->x + one.box->width / 2),
                     svg_number(middle + 0.36 * form.size - hang / 2), svg_number(form.size), text);
}

}  // namespace

std::string labels(const Boxes& boxes, const Spans& spans, const LabelRule& rule) {
  std::string out;
  for (auto& [kind, group] : groups_of(boxes, spans, rule)) {
    LabelForm form = form_of(group, rule);
    if (form.size == 0) {
      std::erase_if(group,
                    [&](const Labelled& one) { return !rule.numbers->is_eighth(one.span->op); });
      form = form_of(group, rule);
    }
    if (form.size == 0) continue;
    for (const Labelled& one : group) {
      if (fits(one, form.with_stage, form.size, rule.height)) out += label_text(one, form, rule);
    }
  }
  return out;
}

}  // namespace stageline::report
