// Converts pieces to boxes, and merges narrow ones.
#include "tools/report/timeline/svg_boxes.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/index.hpp"

namespace stageline::report {

double TimeScale::exact(Time time) const {
  const double share =
      static_cast<double>((time - start).count()) / static_cast<double>((end - start).count());
  return left + width * share;
}

double TimeScale::x(Time time) const { return std::round(exact(time) * 100) / 100; }

Time TimeScale::nearest(Time time) const { return std::clamp(time, start, end); }

namespace {

constexpr double least_width = 0.4;  // px, of a lone piece: still visible

// The stack of a merged cell: heights by tone, in steps.
using Stack = std::map<int, int>;

// Rounds shares (by tone, together at most 1) to steps. Every tone present gets at least one step,
// the rest is rounded, and the rounding error is carried on, so that the stack is exact to half a
// step and the number of tones.
Stack stack_of(const std::map<int, double>& covered, double cell_width, int height_steps) {
  double sum = 0;
  for (const auto& [tone, width] : covered) sum += width;
  const double whole = std::max(sum, cell_width);  // receives may overlap
  Stack stack;
  double covered_below = 0;
  int below = 0;
  for (const auto& [tone, width] : covered) {
    covered_below += width;
    const int rounded = static_cast<int>(std::lround(covered_below / whole * height_steps));
    const int top = std::min(std::max(rounded, below + 1), height_steps);
    if (top > below) stack[tone] = top - below;
    below = std::max(below, top);
  }
  return stack;
}

// Merges the pieces first..last-1, all narrow, into cells from the first start to the last end.
void merge_run(const std::vector<Piece>& pieces, std::size_t first, std::size_t last,
               const TimeScale& scale, double narrow, int height_steps, Boxes& out) {
  const double left = scale.x(pieces[first].start);
  double right = left;
  for (std::size_t i = first; i < last; ++i) {
    if (pieces[i].end == pieces[i].start) continue;
    right = std::max(right, scale.x(pieces[i].end));
    ++out.merged;
  }
  right = std::max(right, left + least_width);
  const auto cells = std::max<std::size_t>(1, static_cast<std::size_t>((right - left) / narrow));
  const double cell_width = (right - left) / static_cast<double>(cells);
  std::vector<std::map<int, double>> covered(cells);
  for (std::size_t i = first; i < last; ++i) {
    const auto edge = [&](Time time) { return std::clamp(scale.exact(time), left, right); };
    const double begin = edge(pieces[i].start);
    const double end = edge(pieces[i].end);
    auto cell = std::min(cells - 1, static_cast<std::size_t>((begin - left) / cell_width));
    for (; cell < cells; ++cell) {
      const double cell_left = left + static_cast<double>(cell) * cell_width;
      if (cell_left >= end) break;
      const double width = std::min(end, cell_left + cell_width) - std::max(begin, cell_left);
      if (width > 0) covered[cell][pieces[i].tone] += width;
    }
  }
  std::size_t from = 0;
  Stack current = stack_of(covered[0], cell_width, height_steps);
  for (std::size_t cell = 1; cell <= cells; ++cell) {
    const Stack next = cell < cells ? stack_of(covered[cell], cell_width, height_steps) : Stack{};
    if (cell < cells && next == current) continue;
    const double x = left + static_cast<double>(from) * cell_width;
    const double width = static_cast<double>(cell - from) * cell_width;
    int below = 0;
    for (const auto& [tone, steps] : current) {
      below += steps;
      out.boxes.push_back({x, width, 1 - static_cast<double>(below) / height_steps,
                           static_cast<double>(steps) / height_steps, tone, -1});
    }
    from = cell;
    current = next;
  }
}

}  // namespace

Boxes boxes_of(const std::vector<Piece>& pieces, const TimeScale& scale, double narrow, int steps) {
  Boxes out;
  const auto width_of = [&](const Piece& piece) {
    return scale.x(piece.end) - scale.x(piece.start);
  };
  std::size_t at = 0;
  while (at < pieces.size()) {
    const Piece& piece = pieces[at];
    if (piece.end <= piece.start) {
      ++at;
      continue;
    }
    if (width_of(piece) >= narrow) {
      std::size_t next = at + 1;  // those with the same times share the height
      while (next < pieces.size() && pieces[next].start == piece.start &&
             pieces[next].end == piece.end) {
        ++next;
      }
      const double height = 1.0 / static_cast<double>(next - at);
      for (std::size_t i = at; i < next; ++i) {
        out.boxes.push_back({scale.x(piece.start), width_of(piece),
                             static_cast<double>(i - at) * height, height, pieces[i].tone,
                             static_cast<std::ptrdiff_t>(i)});
      }
      at = next;
      continue;
    }
    std::size_t next = at;
    std::size_t visible = 0;
    double right = scale.x(piece.start);
    while (next < pieces.size() && width_of(pieces[next]) < narrow &&
           scale.x(pieces[next].start) - right < narrow) {
      if (pieces[next].end > pieces[next].start) ++visible;
      right = std::max(right, scale.x(pieces[next].end));
      ++next;
    }
    if (visible == 1) {
      out.boxes.push_back({scale.x(piece.start), std::max(width_of(piece), least_width), 0, 1,
                           piece.tone, static_cast<std::ptrdiff_t>(at)});
    } else {
      merge_run(pieces, at, next, scale, narrow, steps, out);
    }
    at = next;
  }
  return out;
}

}  // namespace stageline::report
