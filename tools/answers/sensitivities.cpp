#include "tools/answers/sensitivities.hpp"

#include <utility>

#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"

namespace stageline::answers {

SensitivityAnswer answer(const SensitivityQuestion& question, const Watch& watch) {
  OpenedCase opened = opened_case(question);
  Outcome outcome = study(opened.asked);
  SensitivityAnswer answered{std::move(opened.setting), std::move(opened.asked),
                             std::move(outcome)};
  for (std::string& note : setting_notes(answered.asked, answered.outcome)) {
    answered.setting.notes.push_back(std::move(note));
  }
  answered.found = sensitivity_of(answered.asked, answered.outcome, question.threads, watch.stop,
                                  watch.progress);
  if (answered.found.effects.empty() && answered.found.partial) {
    throw NothingKnown{"no lever was looked at"};
  }
  return answered;
}

}  // namespace stageline::answers
