#include "tools/answers/bounded.hpp"

#include <utility>

#include "tools/study/figures/notes.hpp"

namespace stageline {

BoundAnswer answer(const BoundQuestion& question) {
  OpenedCase opened = opened_case(question);
  for (std::string& note : setting_notes(opened.asked)) {
    opened.setting.notes.push_back(std::move(note));
  }
  BoundAnswer answered{std::move(opened.setting), std::move(opened.asked)};
  answered.bound = bound_of(answered.asked);
  return answered;
}

}  // namespace stageline
