// Draws the space-time diagram as text.
#include "tools/report/text/space_time.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

constexpr int most_devices = 24;   // up to this many are all drawn
constexpr int devices_at_end = 8;  // first and last ones drawn of more
constexpr char line_sign = '-';    // printed as "─"

enum class RowKind : std::uint8_t { forward, backward, weights };

RowKind row_of(OpKind kind) {
  if (kind == OpKind::forward) return RowKind::forward;
  return kind == OpKind::weight_grad ? RowKind::weights : RowKind::backward;
}

char letter_of(RowKind kind) {
  switch (kind) {
    case RowKind::forward:
      return 'F';
    case RowKind::backward:
      return 'B';
    case RowKind::weights:
      return 'W';
  }
  return '?';
}

// What occurs on the compute lanes.
struct RowContents {
  bool weights = false;
  bool split = false;  // input gradients apart from weight gradients
  bool recompute = false;
  bool update = false;
  bool pairs = false;
  std::uint32_t microbatches = 0;

  void add(Op op) {
    weights = weights || op.kind == OpKind::weight_grad;
    split = split || op.kind == OpKind::input_grad;
    recompute = recompute || op.kind == OpKind::recompute;
    update = update || op.kind == OpKind::update;
    pairs = pairs || op.overlapped != 0;
    if (counts_microbatches(op.kind)) microbatches = std::max(microbatches, op.microbatch + 1);
  }

  void add(const Timeline& timeline) {
    for (int device = 0; device < static_cast<int>(timeline.devices.size()); ++device) {
      for (const Span& span : timeline.lane(device, LaneKind::compute)) add(span.op);
    }
  }
};

// Columns of equal length; a column shows what runs at its middle.
struct TimeAxis {
  Time tick{};
  std::size_t columns = 0;
  std::size_t in_run = 0;  // whose middle is before the end

  // The first column whose middle is not before `time`.
  std::size_t column(Time time) const {
    const Time half = tick / 2;
    if (time <= half) return 0;
    return std::min(columns, as_size((time - half + tick - Time{1}) / tick));
  }
};

TimeAxis axis_of(const Timeline& timeline, const FigureOptions& options) {
  const Time end = makespan(timeline);
  TimeAxis axis;
  axis.tick = options.tick;
  if (axis.tick <= Time{}) {
    axis.tick = std::max(Time{1}, (end + Time{options.columns - 1}) / options.columns);
  }
  axis.columns = as_size((end + axis.tick - Time{1}) / axis.tick);
  axis.in_run = axis.column(end);
  return axis;
}

void draw_box(std::string& row, std::size_t from, std::size_t to, Op op) {
  if (from >= to) return;
  const auto begin = row.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = row.begin() + static_cast<std::ptrdiff_t>(to);
  if (op.kind == OpKind::recompute || op.kind == OpKind::update) {
    std::fill(begin, end, op.kind == OpKind::recompute ? '~' : '^');
    return;
  }
  std::fill(begin, end, line_sign);
  std::string number = fmt::format("{}", op.microbatch);
  if (number.size() > 1 && number.size() >= to - from) number = number.back();
  std::copy(number.begin(), number.end(), begin);
}

std::string row_text(const Spans& spans, RowKind kind, const TimeAxis& axis) {
  std::string row(axis.columns, ' ');
  for (const Span& span : spans) {
    if (row_of(span.op.kind) == kind) {
      draw_box(row, axis.column(span.start), axis.column(span.end), span.op);
    }
  }
  return row;
}

void mark_idle(std::string& row, const Spans& spans, const TimeAxis& axis) {
  std::vector<bool> busy(axis.columns, false);
  for (const Span& span : spans) {
    for (std::size_t c = axis.column(span.start); c < axis.column(span.end); ++c) busy[c] = true;
  }
  for (std::size_t c = 0; c < axis.in_run; ++c) {
    if (!busy[c]) row[c] = '.';
  }
}

// The palette of the drawings: blue forward, orange backward, green weight gradient, grey the rest.
const char* colour_of(char sign, RowKind kind) {
  if (sign == ' ') return nullptr;
  if (sign == '~' || sign == '^' || sign == '.') return "\x1b[38;5;245m";
  switch (kind) {
    case RowKind::forward:
      return "\x1b[38;5;32m";
    case RowKind::backward:
      return "\x1b[38;5;172m";
    case RowKind::weights:
      return "\x1b[38;5;36m";
  }
  return nullptr;
}

std::string printed(const std::string& row, RowKind kind, bool colour) {
  std::string text;
  const char* current = nullptr;
  for (const char sign : row) {
    const char* const wanted = colour ? colour_of(sign, kind) : nullptr;
    if (wanted != current) text += wanted == nullptr ? "\x1b[0m" : wanted;
    current = wanted;
    if (sign == line_sign) {
      text += "─";
    } else {
      text += sign;
    }
  }
  return current == nullptr ? text : text + "\x1b[0m";
}

}  // namespace

std::string space_time(const Timeline& timeline, const FigureOptions& options, bool full) {
  const TimeAxis axis = axis_of(timeline, options);
  RowContents contents;
  contents.add(timeline);
  std::vector<RowKind> kinds{RowKind::forward, RowKind::backward};
  if (contents.weights) kinds.push_back(RowKind::weights);
  const int devices = static_cast<int>(timeline.devices.size());
  const std::size_t digits = std::max<std::size_t>(2, fmt::format("{}", devices - 1).size());
  std::string text;
  for (int device = 0; device < devices; ++device) {
    if (!full && devices > most_devices && device == devices_at_end) {
      const int next = devices - devices_at_end;
      text += fmt::format("{:>{}}  | devices {} to {} left out: --full\n", "…", digits, device,
                          next - 1);
      device = next;
    }
    const Spans& spans = timeline.lane(device, LaneKind::compute);
    for (const RowKind kind : kinds) {
      std::string row = row_text(spans, kind, axis);
      if (kind == kinds.back()) mark_idle(row, spans, axis);
      row.erase(row.find_last_not_of(' ') + 1);
      const std::string number = kind == kinds.front() ? fmt::format("{}", device) : "";
      text += fmt::format("{:>{}} {}|{}\n", number, digits, letter_of(kind),
                          printed(row, kind, options.colour));
    }
  }
  return text;
}

std::string space_time_legend(const std::vector<const Timeline*>& timelines) {
  RowContents contents;
  for (const Timeline* const timeline : timelines) contents.add(*timeline);
  std::string text = "F forward · B backward";
  if (contents.split) text += ", or its input gradient";
  if (contents.weights) text += " · W weight gradient";
  text += contents.microbatches > 10
              ? " · number of the micro-batch, in a narrow box its last digit"
              : " · digit of the micro-batch";
  if (contents.pairs) text += " · both rows at once: an overlapped pair";
  if (contents.recompute) text += " · ~ recompute";
  if (contents.update) text += " · ^ update";
  return text + " · . idle";
}

}  // namespace stageline::report
