#include "tools/report/text/drawn.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "tools/base/text.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/report/text/space_time.hpp"
#include "tools/report/timeline/weights.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::report {

std::string drawn_text(const answers::DrawingAnswer& drawn, const DrawnView& view) {
  FigureOptions options{Time{}, view.columns, view.colour};
  const bool several = drawn.outcomes.size() > 1;
  Time longest{};
  std::vector<const Timeline*> timelines;
  for (const Outcome& outcome : drawn.outcomes) {
    longest = std::max(longest, makespan(outcome.timeline));
    timelines.push_back(&outcome.timeline);
  }
  if (several) {
    options.tick = std::max(Time{1}, (longest + Time{view.columns - 1}) / view.columns);
  }
  std::string text;
  const auto say = [&](const std::string& lines) { text += wrapped(lines, view.width); };
  for (const Outcome& outcome : drawn.outcomes) {
    if (several) say(fmt::format("{} · {}\n", outcome.schedule, run_words(outcome)));
    text += space_time(outcome.timeline, options, view.full) +
            held_figure(outcome.program, outcome.timeline, outcome.versions, options);
    if (several && !view.quiet) say(held_legend(outcome.versions));
  }
  if (view.quiet) return text;
  say(space_time_legend(timelines) + "\n" +
      (several ? "" : held_legend(drawn.outcomes[0].versions)));
  return text;
}

std::vector<std::string> drawn_notes(const answers::DrawingAnswer& drawn) {
  std::vector<std::string> said = notes(drawn.setting);
  for (std::size_t i = 0; i < drawn.outcomes.size(); ++i) {
    for (const std::string& note : stream_notes(drawn.asked[i], drawn.outcomes[i])) {
      if (std::find(said.begin(), said.end(), note) == said.end()) said.push_back(note);
    }
  }
  return said;
}

}  // namespace stageline::report
