// Timelines and programs drawn in text.
#include "sim/text/figure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

char letter_of(Op op) {
  switch (class_of(op.kind)) {
    case OpClass::forward:
      return static_cast<char>('0' + op.microbatch % 10);
    case OpClass::backward:
      return static_cast<char>((op.kind == OpKind::weight_grad ? 'A' : 'a') + op.microbatch % 26);
    case OpClass::recompute:
      return '~';
    case OpClass::update:
      return '^';
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return '?';  // not on a compute lane
  }
  return '?';
}

// The palette of the drawings: blue forward, orange backward, green weight gradient, grey the rest.
const char* colour_of(char letter) {
  if (letter >= '0' && letter <= '9') return "\x1b[38;5;32m";
  if (letter >= 'a' && letter <= 'z') return "\x1b[38;5;172m";
  if (letter >= 'A' && letter <= 'Z') return "\x1b[38;5;36m";
  return "\x1b[38;5;245m";
}

std::string coloured(const std::string& row) {
  std::string text;
  const char* current = nullptr;
  for (const char letter : row) {
    const char* const wanted = letter == ' ' ? nullptr : colour_of(letter);
    if (wanted != current) text += wanted == nullptr ? "\x1b[0m" : wanted;
    current = wanted;
    text += letter;
  }
  if (current != nullptr) text += "\x1b[0m";
  return text;
}

}  // namespace

std::string figure(const Timeline& timeline, FigureOptions options) {
  const Time end = makespan(timeline);
  Time tick = options.tick;
  if (tick <= Time{}) tick = std::max(Time{1}, (end + Time{options.columns - 1}) / options.columns);
  const auto columns = static_cast<std::size_t>((end + tick - Time{1}) / tick);
  std::string text;
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    std::string row(columns, ' ');
    const auto& spans = timeline.lane(static_cast<int>(device), LaneKind::compute);
    std::size_t at = 0;
    for (std::size_t column = 0; column < columns; ++column) {
      const Time middle = tick * static_cast<std::int64_t>(column) + tick / 2;
      while (at < spans.size() && spans[at].end <= middle) ++at;
      if (at == spans.size() || spans[at].start > middle) continue;
      // An overlapped pair shows its first op in the first half and its second op in the second.
      const bool pair = spans[at].op.overlapped && at + 1 < spans.size();
      const bool second = pair && middle >= spans[at].start + (spans[at].end - spans[at].start) / 2;
      row[column] = letter_of(spans[second ? at + 1 : at].op);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += fmt::format("{:>3} |{}\n", device, options.colour ? coloured(row) : row);
  }
  return text;
}

std::string figure_legend() {
  return "0-9 forward of a micro-batch (mod 10) · a-z its backward or input gradient · A-Z its "
         "weight gradient · ~ recompute · ^ update · blank: idle";
}

std::string grid(const Program& program, const std::vector<Op>& marked, int around) {
  std::size_t widest = 0;
  for (const std::string& device : program.devices) widest = std::max(widest, device.size());
  std::string text;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    const std::vector<Op>& ops = program.ops[device];
    const auto is_marked = [&](Op op) {
      return std::any_of(marked.begin(), marked.end(),
                         [&](Op other) { return plain(other) == plain(op); });
    };
    std::size_t first = 0;
    std::size_t last = ops.size();
    const std::size_t reach = as_size(around);
    if (!marked.empty()) {
      const auto one = std::find_if(ops.begin(), ops.end(), is_marked);
      const auto end = std::find_if(ops.rbegin(), ops.rend(), is_marked).base();
      const std::size_t from = one == ops.end() ? 0 : as_size(one - ops.begin());
      const std::size_t to = one == ops.end() ? 0 : as_size(end - ops.begin());
      first = from > reach ? from - reach : 0;
      last = std::min(ops.size(), to + reach);
      last = std::min(last, first + 6 * reach);
    }
    std::string row =
        fmt::format("{:>{}} |{}", program.devices[device], widest, first > 0 ? " …" : "");
    for (std::size_t i = first; i < last; ++i) {
      row += is_marked(ops[i]) ? fmt::format(" >{}<", print(ops[i])) : " " + print(ops[i]);
    }
    text += row + (last < ops.size() ? " …\n" : "\n");
  }
  return text;
}

}  // namespace stageline
