// Simulates the run as it was asked for and takes its step apart.
#include "tools/answers/explained.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/answers/suspects.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::answers {
namespace {

void check_samples(const ExplainQuestion& question, const Explanation& found) {
  const auto asked = std::llround(found.outcome.samples());
  if (question.samples_measured == 0 || found.asked.model.batch == 0) return;
  if (question.samples_measured == asked) return;
  throw UsageError(fmt::format(
      "the measured step is of {} samples, and that of the run is of {}: micro-batches × their size "
      "× replicas; check --microbatches, --microbatch-size and --dp",
      question.samples_measured, asked));
}

}  // namespace

Explanation answer(const ExplainQuestion& question) {
  OpenedCase opened = opened_case(question);
  Outcome outcome = study(opened.asked, Curves::none);
  if (outcome.step_time <= Time{}) {
    throw UsageError(fmt::format("the step of {} takes no time, and nothing can be held against it",
                                 opened.asked.model.name));
  }
  Explanation found;
  found.setting = std::move(opened.setting);
  found.asked = std::move(opened.asked);
  found.outcome = std::move(outcome);
  check_samples(question, found);
  found.interval = intervals_of(found.asked.model, found.asked.ranked.get()).step;
  found.memory_measured = question.memory_measured;
  for (std::string& note : setting_notes(found.asked, found.outcome)) {
    found.setting.notes.push_back(std::move(note));
  }
  found.rates = training_rates(found.asked, found.outcome);
  found.measured = measured_step(question.measured, found.outcome.step_time, found.rates,
                                 found.outcome.samples(), found.asked.device_count());
  found.parts = step_parts(question.setting, found.setting, found.asked, found.outcome,
                           waterfall_of(found.asked, found.outcome));
  found.parts.push_back(
      {std::string(unexplained_part), found.measured.step - found.outcome.step_time, ""});
  if (std::abs(found.longer()) >= little) found.suspects = suspects_of(question, found);
  return found;
}

}  // namespace stageline::answers
