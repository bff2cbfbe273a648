// Makes the picture of a result.
#include "tools/report/drawing_of.hpp"

#include <fmt/core.h>

#include "tools/base/provenance.hpp"
#include "tools/base/table.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/study/notes.hpp"

namespace stageline {
namespace {

std::string subtitle_of(const Outcome& outcome) {
  return fmt::format(
      "{}{} · {} micro-batches{}{} · step {} · bubble {}", outcome.devices,
      outcome.devices == 1 ? " device" : " devices", outcome.microbatches,
      of_samples(outcome.microbatch_size, outcome.sample),
      outcome.program.steps > 1 ? fmt::format(", {} steps shown", outcome.program.steps) : "",
      print(outcome.step_time), percent(outcome.bubble_fraction));
}

}  // namespace

Drawing drawing_of(const Setting& setting, const Case& asked, const Outcome& outcome) {
  Drawing drawing;
  drawing.title = fmt::format("{} · {}", outcome.schedule, setting.model.name);
  drawing.subtitle = subtitle_of(outcome);
  drawing.footnotes.push_back(fmt::format(
      "Costs {}.{}", described(setting.model.provenance),
      asked.cluster.name.empty() ? "" : fmt::format(" Cluster: {}.", asked.cluster.name)));
  if (!setting.cluster.note.empty()) {
    drawing.footnotes.push_back("Note: " + setting.cluster.note + ".");
  }
  for (const std::string& note : stream_notes(asked, outcome)) {
    drawing.footnotes.push_back("Note: " + note + ".");
  }
  drawing.program = outcome.program;
  drawing.timeline = outcome.timeline;
  if (outcome.bytes_known()) drawing.memory = outcome.memory;
  drawing.memory_limit = outcome.memory_limit;
  drawing.hosts = outcome.costs.network.hosts;
  drawing.host_limit = outcome.host_limit;
  drawing.idle = outcome.metrics.idle;
  drawing.versions = outcome.versions;
  return drawing;
}

}  // namespace stageline
