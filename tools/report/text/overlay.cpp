// Writes an overlay as tables, JSON and picture.
#include "tools/report/text/overlay.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/analysis/statistics.hpp"
#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/timeline/overlaid.hpp"

namespace stageline::report {
namespace {

// 1 - busy / length
double idle_of(const StepCut& side, std::size_t device) {
  return device < side.busy.size() ? 1 - fraction_of(side.busy[device], side.length) : 1;
}

std::string busy_cell(const StepCut& side, std::size_t device) {
  return device < side.busy.size() ? print(side.busy[device]) : "-";
}
std::string idle_cell(const StepCut& side, std::size_t device) {
  return device < side.busy.size() ? percent(idle_of(side, device)) : "-";
}

std::string device_name(const Overlay& overlay, std::size_t device) {
  const auto& first = overlay.first.timeline.devices;
  const auto& second = overlay.second.timeline.devices;
  if (device >= first.size()) return second[device];
  if (device >= second.size() || first[device] == second[device]) return first[device];
  return fmt::format("{} / {}", first[device], second[device]);
}

std::size_t devices_of(const Overlay& overlay) {
  return std::max(overlay.first.timeline.devices.size(), overlay.second.timeline.devices.size());
}

std::string device_table(const Overlay& overlay, int width) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t d = 0; d < devices_of(overlay); ++d) {
    rows.push_back({device_name(overlay, d), busy_cell(overlay.first, d),
                    busy_cell(overlay.second, d), idle_cell(overlay.first, d),
                    idle_cell(overlay.second, d)});
  }
  const auto& [a, b] = std::pair(overlay.first.word, overlay.second.word);
  return table({{"device", true}, {"busy, " + a}, {"busy, " + b}, {"idle, " + a}, {"idle, " + b}},
               rows, width);
}

std::string median_table(const Overlay& overlay, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const KindMedian& median : overlay.medians) {
    const auto cells = [&](std::size_t count, Time time, Time spread) {
      rows.back().push_back(count > 0 ? print(time) : "-");
      rows.back().push_back(count > 1 ? print(spread) : "-");
    };
    rows.push_back({fmt::format("{}{}", median.stage, symbol(median.kind))});
    cells(median.first_count, median.first, median.first_spread);
    cells(median.second_count, median.second, median.second_spread);
    const bool both = median.first_count > 0 && median.second_count > 0;
    rows.back().push_back(both ? signed_time(median.second - median.first) : "-");
    rows.back().push_back(both && median.first > Time{}
                              ? fmt::format("{:.3g}×", fraction_of(median.second, median.first))
                              : "-");
  }
  const auto& [a, b] = std::pair(overlay.first.word, overlay.second.word);
  return table({{"stage and kind", true}, {a}, {"±"}, {b}, {"±"}, {"difference"}, {"ratio"}}, rows,
               width);
}

std::string op_table(const Overlay& overlay, int top, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const OpPair& pair : overlay.ops) {
    if (static_cast<int>(rows.size()) == top) break;
    rows.push_back({print(pair.op), pair.device, print(pair.first_time()),
                    print(pair.second_time()), signed_time(pair.difference()),
                    signed_share(fraction_of(pair.difference(), overlay.second.step_time))});
  }
  return table({{"op", true},
                {"device", true},
                {overlay.first.word},
                {overlay.second.word},
                {"difference"},
                {"of the step"}},
               rows, width);
}

std::string first_ops(const std::vector<Op>& ops) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ops.size(), most); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ", print(ops[i]));
  }
  return text + (ops.size() > most ? fmt::format(" … ({} ops)", ops.size()) : "");
}

}  // namespace

std::string overlay_text(const Overlay& overlay, int top, int width) {
  const StepCut& a = overlay.first;
  const StepCut& b = overlay.second;
  std::string text = fmt::format("{}: {}\n{}: {}\n", a.word, a.name, b.word, b.name);
  text += overlay_sentence(overlay) + "\n";
  for (const StepCut* const side : {&a, &b}) {
    if (side->length == side->step_time) continue;
    text += fmt::format("of the {} step {}, {} are from its first op to the end of its last\n",
                        side->word, side->step, print(side->length));
  }
  text += "\n" + device_table(overlay, width) + "\n" + median_table(overlay, width) + "\n";
  text += fmt::format("the {} of {} ops that differ most\n",
                      std::min(as_size(top), overlay.ops.size()), overlay.ops.size());
  text += op_table(overlay, top, width);
  if (!overlay.only_first.empty()) {
    text += fmt::format("only {}: {}\n", a.word, first_ops(overlay.only_first));
  }
  if (!overlay.only_second.empty()) {
    text += fmt::format("only {}: {}\n", b.word, first_ops(overlay.only_second));
  }
  return text;
}

Sheet overlay_sheet(const Overlay& overlay) {
  const auto& [a, b] = std::pair(overlay.first.word, overlay.second.word);
  Sheet sheet{{{"op", "Stage, kind and micro-batch", true},
               {"device", "Of the second side", true},
               {a, "How long the op takes in the first"},
               {b, "How long the op takes in the second"},
               {"difference", "Second less first"},
               {"of the step", "The difference as a share of the second side's step"}},
              {}};
  for (const OpPair& pair : overlay.ops) {
    const double share = fraction_of(pair.difference(), overlay.second.step_time);
    sheet.rows.push_back({{print(pair.op), {}},
                          {pair.device, {}},
                          {print(pair.first_time()), time_figure(pair.first_time())},
                          {print(pair.second_time()), time_figure(pair.second_time())},
                          {signed_time(pair.difference()), time_figure(pair.difference())},
                          {signed_share(share), number_figure(share)}});
  }
  return sheet;
}

std::string overlay_sentence(const Overlay& overlay) {
  const StepCut& a = overlay.first;
  const StepCut& b = overlay.second;
  return fmt::format("step: {} {}, {} {}: {} ({})", a.word, print(a.step_time), b.word,
                     print(b.step_time), signed_time(b.step_time - a.step_time),
                     signed_share(fraction_of(b.step_time - a.step_time, a.step_time)));
}

std::string overlay_svg(const Overlay& overlay, const SvgOptions& options) {
  const StepCut& a = overlay.first;
  const StepCut& b = overlay.second;
  std::vector<std::string> names = a.timeline.devices;
  if (b.timeline.devices.size() > names.size()) names = b.timeline.devices;
  Drawing drawing = overlaid(a.timeline, a.word, b.timeline, b.word, names);
  std::string above = a.word;
  above[0] = static_cast<char>(above[0] - 'a' + 'A');
  drawing.title = fmt::format("{} above {}", above, b.word);
  drawing.subtitle = fmt::format("step: {} {}, {} {} ({}) · {}: {} · {}: {}", a.word,
                                 print(a.step_time), b.word, print(b.step_time),
                                 signed_share(fraction_of(b.step_time - a.step_time, a.step_time)),
                                 a.word, a.name, b.word, b.name);
  drawing.footnotes.emplace_back("Idle time is a share of each one's own step.");
  for (const std::string& note : overlay.notes) drawing.footnotes.push_back("Note: " + note + ".");
  return svg(drawing, options);
}

}  // namespace stageline::report
