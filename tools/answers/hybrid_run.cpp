#include "tools/answers/hybrid_run.hpp"

#include <utility>

#include "tools/study/figures/notes.hpp"

namespace stageline::answers {

HybridAnswer answer(const HybridQuestion& question) {
  OpenedCase opened = opened_case(question);
  for (std::string& note : setting_notes(opened.asked)) {
    opened.setting.notes.push_back(std::move(note));
  }
  HybridAnswer answered{std::move(opened.setting), std::move(opened.asked)};
  answered.found = hybrid_study(answered.asked, question.share, question.points);
  return answered;
}

}  // namespace stageline::answers
