// Makes the picture of a result.
#include "tools/report/drawing_of.hpp"

#include <fmt/core.h>

#include <cmath>

#include "tools/answers/profiled.hpp"
#include "tools/base/provenance.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/training.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::report {
namespace {

std::string problem_words(const Outcome& outcome) {
  // Outcomes that were not studied (measured runs) have devices alone.
  const bool ranks = outcome.all_devices > outcome.devices;
  const int devices = ranks ? outcome.all_devices : outcome.devices;
  const std::string in_ranks = ranks ? fmt::format(" in {} pipeline ranks", outcome.devices) : "";
  return fmt::format("{}{}{} · {} micro-batches{}", devices, devices == 1 ? " device" : " devices",
                     in_ranks, outcome.microbatches,
                     of_samples(outcome.microbatch_size, outcome.sample));
}

// The idle share of the run as drawn, with its start and its end.
double idle_share(const Outcome& outcome) {
  const auto devices = static_cast<double>(outcome.metrics.device.size());
  if (devices <= 0 || outcome.metrics.makespan <= Time{}) return 0;
  double busy = 0;
  for (const DeviceMetrics& device : outcome.metrics.device) busy += to_seconds(device.busy);
  return 1 - busy / (devices * to_seconds(outcome.metrics.makespan));
}

// Whether the bubble is that of the steady pace, and differs from the idle shares of the rows.
bool bubble_is_elsewhere(const Outcome& outcome) {
  return std::abs(idle_share(outcome) - outcome.bubble_fraction) >= 0.0005;
}

}  // namespace

std::string run_words(const Outcome& outcome) {
  std::string words;
  if (outcome.program.settings.sequence_chunks > 1) {
    words += fmt::format("{} chunks a micro-batch · ", outcome.program.settings.sequence_chunks);
  }
  if (outcome.program.steps > 1) words += fmt::format("{} steps shown · ", outcome.program.steps);
  return words + fmt::format("step {} · bubble {}{}", print(outcome.step_time),
                             percent(outcome.bubble_fraction),
                             bubble_is_elsewhere(outcome) ? " at the steady pace" : "");
}

Drawing drawing_of(const Setting& setting, const Case& asked, const Outcome& outcome) {
  Drawing drawing;
  drawing.title = fmt::format("{} · {}", outcome.schedule, setting.model.name);
  drawing.subtitle = problem_words(outcome) + " · " + run_words(outcome);
  drawing.rates = rates_words(training_rates(asked, outcome));
  drawing.footnotes.push_back(fmt::format(
      "Costs {}.{}", described(setting.model.provenance),
      asked.cluster.name.empty() ? "" : fmt::format(" Cluster: {}.", asked.cluster.name)));
  if (!setting.cluster.note.empty()) {
    drawing.footnotes.push_back("Note: " + setting.cluster.note + ".");
  }
  for (const std::string& note : setting.notes) {
    drawing.footnotes.push_back("Note: " + note + ".");
  }
  for (const std::string& note : stream_notes(asked, outcome)) {
    drawing.footnotes.push_back("Note: " + note + ".");
  }
  if (const int chunks = outcome.program.settings.sequence_chunks; chunks > 1) {
    drawing.footnotes.push_back(fmt::format(
        "Numbers count chunks of sequences: n is chunk n mod {0} of micro-batch n / {0}.", chunks));
  }
  if (bubble_is_elsewhere(outcome)) {
    drawing.footnotes.push_back(fmt::format(
        "Idle times beside the rows are shares of the time drawn, with the start and the end of the "
        "run. The bubble of {} is that of the steady pace, from the end of one step to the next's.",
        percent(outcome.bubble_fraction)));
  }
  drawing.program = outcome.program;
  drawing.step = outcome.step_time;
  drawing.timeline = outcome.timeline;
  if (outcome.bytes_known()) drawing.memory = outcome.memory;
  drawing.memory_limit = outcome.memory_limit;
  drawing.hosts = outcome.costs.network.hosts;
  drawing.host_limit = outcome.host_limit;
  drawing.idle = outcome.metrics.idle;
  drawing.versions = outcome.versions;
  return drawing;
}

Drawing drawing_of(const KinetoRun& run) {
  Drawing drawing;
  const int steps = run.program.steps;
  drawing.title = "measured run";
  drawing.subtitle =
      fmt::format("{} rank{} · {} step{} of {} micro-batches · {}", run.program.devices.size(),
                  run.program.devices.size() == 1 ? "" : "s", steps, steps == 1 ? "" : "s",
                  run.program.microbatches, print(makespan(run.timeline)));
  for (const std::string& note : run.notes) drawing.footnotes.push_back("Note: " + note + ".");
  drawing.program = run.program;
  drawing.timeline = run.timeline;
  if (run.source != RangeSource::launches) drawing.idle = answers::idle_of(run).metrics.idle;
  return drawing;
}

namespace {

// " · -18.2 % against gpipe"; empty of the first one itself, and where a step takes no time.
std::string difference_words(const Outcome& outcome, const Outcome& first) {
  if (&outcome == &first || first.step_time <= Time{}) return "";
  const double share = to_seconds(outcome.step_time) / to_seconds(first.step_time) - 1;
  return fmt::format(" · {} against {}", signed_share(share), first.schedule);
}

}  // namespace

Drawings drawings_of(const Setting& setting, std::span<const Case> asked,
                     std::span<const Outcome> outcomes) {
  Drawings drawings;
  drawings.title = setting.model.name;
  drawings.subtitle = problem_words(outcomes.front());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    Drawing run = drawing_of(setting, asked[i], outcomes[i]);
    run.title = outcomes[i].schedule;
    run.subtitle = run_words(outcomes[i]) + difference_words(outcomes[i], outcomes.front());
    drawings.runs.push_back(std::move(run));
  }
  return drawings;
}

}  // namespace stageline::report
