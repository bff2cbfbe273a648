#include "tools/report/text/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/step_parts.hpp"

namespace stageline::report {
namespace {

std::string memory_line(const answers::Explanation& found) {
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
std::string predicted_text(const answers::Explanation& found) {
  std::string step = print(found.outcome.step_time);
  if (!found.interval) return step;
  return fmt::format("{} ({})", step, range_of(step, found.interval->low, found.interval->high));
}

std::string verdict(const answers::Explanation& found) {
  const double longer = found.longer();
  std::string text = fmt::format(
      "measured {} ({}) · predicted {} by {}: the measured step is {} {}",
      print(found.measured.step), found.measured.read_as, predicted_text(found),
      found.outcome.schedule, percent(std::abs(longer)), longer >= 0 ? "longer" : "shorter");
  if (found.interval) {
    text += fmt::format(", {} the range", found.fits_evidence() ? "within" : "outside");
  }
  if (std::abs(longer) < answers::little) text += "; the parts below explain it";
  text += "\n";
  if (found.interval) text += "range: " + provenance_of(*found.interval) + "\n";
  return text;
}

std::string suspects_text(const answers::Explanation& found) {
  if (std::abs(found.longer()) < answers::little) return "";
  if (found.suspects.empty()) {
    return "\nno ailment that is known explains the rest\n";
  }
  std::string text = fmt::format("\nlikeliest causes of what is not explained ({}):\n",
                                 signed_time(found.parts.back().time));
  for (std::size_t i = 0; i < found.suspects.size(); ++i) {
    const answers::Suspect& one = found.suspects[i];
    text += fmt::format("{}. {}: if {}, the step takes {}; check: {}{}{}\n", i + 1, one.name,
                        one.words, print(one.step), one.check,
                        one.flags.empty() ? "" : "; asked for by ", one.flags);
  }
  return text;
}

}  // namespace

std::string explanation_text(const answers::Explanation& found, const ExplanationView& view) {
  std::string lines = view.quiet ? "" : heading(found.setting, found.asked) + "\n";
  lines += verdict(found) + memory_line(found);
  std::string text = wrapped(lines, view.width) + "\n" +
                     step_parts_table(found.parts, found.outcome.step_time, view.width);
  return text + wrapped(first_changes(found.parts) + suspects_text(found), view.width);
}

std::vector<std::string> explanation_notes(const answers::Explanation& found) {
  std::vector<std::string> all = notes(found.setting);
  all.insert(all.end(), found.measured.notes.begin(), found.measured.notes.end());
  if (!found.suspects.empty()) {
    all.emplace_back(
        "causes are simulated one at a time, at the strength that comes nearest; how rare each is "
        "was set by hand, and more than one may be true");
  }
  return all;
}

}  // namespace stageline::report
