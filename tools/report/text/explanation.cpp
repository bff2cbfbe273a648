#include "tools/report/text/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/waterfall.hpp"

namespace stageline {
namespace {

constexpr int most_bar_columns = 40;
constexpr int fewest_bar_columns = 10;
constexpr int beside_bars = 66;
constexpr std::string_view unexplained = "not explained";

double part_of_step(Time part, Time whole) { return to_seconds(part) / to_seconds(whole); }

std::string parts_table(const Explanation& found, int width) {
  const Time whole = std::max(found.measured.step, found.outcome.step_time);
  const int columns =
      width == 0 ? most_bar_columns : std::min(most_bar_columns, width - beside_bars);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, Time from, Time to, bool sum) {
    rows.push_back({name, sum ? print(to - from) : signed_time(to - from),
                    percent(part_of_step(to - from, found.measured.step))});
    if (columns >= fewest_bar_columns) rows.back().push_back(bar_between(from, to, whole, columns));
  };
  Time until{};
  for (const StepPart& part : found.parts) {
    if (part.name == unexplained) add("predicted", Time{}, until, true);
    add(part.name, until, until + part.time, until == Time{});
    until += part.time;
  }
  add("measured", Time{}, until, true);
  std::vector<Column> titles{{"part of the step", true}, {"time"}, {"of the measured"}};
  if (columns >= fewest_bar_columns) titles.push_back({"", true});
  return table(titles, rows, width);
}

std::string memory_line(const Explanation& found) {
  if (!found.memory_measured) return "";
  if (!found.outcome.bytes_known()) {
    return "the trace does not say bytes, so that the measured memory cannot be held against it\n";
  }
  const Bytes predicted = found.outcome.memory.device[as_size(found.outcome.peak_device())].peak;
  const double more =
      static_cast<double>(found.memory_measured->count) / static_cast<double>(predicted.count) - 1;
  return fmt::format(
      "memory: measured {}, predicted {} of tensors on {} ({} of the prediction); context, "
      "communication buffers and what the allocator keeps are beside it\n",
      print(*found.memory_measured), print(predicted),
      found.outcome.program.devices[as_size(found.outcome.peak_device())], signed_share(more));
}

// "5.212 s (4.60–6.78)".
std::string predicted_text(const Explanation& found) {
  std::string step = print(found.outcome.step_time);
  if (!found.interval) return step;
  return fmt::format("{} ({})", step, range_of(step, found.interval->low, found.interval->high));
}

std::string verdict(const Explanation& found) {
  const double longer = found.longer();
  std::string text = fmt::format(
      "measured {} ({}) · predicted {} by {}: the measured step is {} {}",
      print(found.measured.step), found.measured.read_as, predicted_text(found),
      found.outcome.schedule, percent(std::abs(longer)), longer >= 0 ? "longer" : "shorter");
  if (found.interval) {
    text += fmt::format(", {} the range", found.fits_evidence() ? "within" : "outside");
  }
  if (std::abs(longer) < little) text += "; the parts below explain it";
  text += "\n";
  if (found.interval) text += "range: " + provenance_of(*found.interval) + "\n";
  return text;
}

std::string suspects_text(const Explanation& found) {
  if (std::abs(found.longer()) < little) return "";
  if (found.suspects.empty()) {
    return "\nno ailment that is known explains the rest\n";
  }
  std::string text = fmt::format("\nlikeliest causes of what is not explained ({}):\n",
                                 signed_time(found.parts.back().time));
  for (std::size_t i = 0; i < found.suspects.size(); ++i) {
    const Suspect& one = found.suspects[i];
    text += fmt::format("{}. {}: if {}, the step takes {}; check: {}{}{}\n", i + 1, one.name,
                        one.words, print(one.step), one.check,
                        one.flags.empty() ? "" : "; asked for by ", one.flags);
  }
  return text;
}

// The largest part that something makes smaller; kernels and idling alike.
std::string first_change(const Explanation& found) {
  std::vector<const StepPart*> parts;
  for (const StepPart& part : found.parts) {
    if (!part.remedy.empty() && part.time > Time{}) parts.push_back(&part);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const StepPart* a, const StepPart* b) { return a->time > b->time; });
  if (parts.size() > 3) parts.resize(3);
  std::string text;
  for (const StepPart* part : parts) {
    text += fmt::format("→ {} {} of the measured step: {}\n", part->name,
                        percent(part_of_step(part->time, found.measured.step)), part->remedy);
  }
  return text;
}

}  // namespace

std::string explanation_text(const Explanation& found, const ExplanationView& view) {
  std::string lines = view.quiet ? "" : heading(found.setting, found.asked) + "\n";
  lines += verdict(found) + memory_line(found);
  std::string text = wrapped(lines, view.width) + "\n" + parts_table(found, view.width);
  return text + wrapped(first_change(found) + suspects_text(found), view.width);
}

std::vector<std::string> explanation_notes(const Explanation& found) {
  std::vector<std::string> all = notes(found.setting);
  all.insert(all.end(), found.measured.notes.begin(), found.measured.notes.end());
  if (!found.suspects.empty()) {
    all.emplace_back(
        "causes are simulated one at a time, at the strength that comes nearest; how rare each is "
        "was set by hand, and more than one may be true");
  }
  return all;
}

}  // namespace stageline
