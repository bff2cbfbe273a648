#include "tools/answers/shortest.hpp"

#include <chrono>
#include <utility>

#include "tools/answers/bounded.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::answers {

OptimalAnswer answer(const OptimalQuestion& question, const SearchWatch& watch) {
  OpenedCase opened = opened_case(question);
  check_one_pipeline(opened.asked, "an order");
  const auto begin = std::chrono::steady_clock::now();
  Optimal found = optimal(opened.asked, [&](const BranchKnown& known) {
    const Time left = question.most - (std::chrono::steady_clock::now() - begin);
    if (watch.progress) watch.progress(known, left);
    return (watch.stop != nullptr && *watch.stop) || left <= Time{};
  });
  for (std::string& note : setting_notes(found.asked, found.outcome)) {
    opened.setting.notes.push_back(std::move(note));
  }
  return {std::move(opened.setting), std::move(found)};
}

}  // namespace stageline::answers
