#include "tools/answers/bounded.hpp"

#include <fmt/core.h>

#include <utility>

#include "sim/base/errors.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::answers {

void check_one_pipeline(const Case& asked, const std::string& what) {
  if (asked.pipelines() == 1) return;
  throw UsageError(fmt::format(
      "{} is of one pipeline that stands for all, and here {} differ in devices, links or "
      "--all-pipelines; `stageline simulate` takes them",
      what, asked.pipelines()));
}

BoundAnswer answer(const BoundQuestion& question) {
  BoundQuestion with_turns = question;
  SettingRequest& setting = with_turns.setting;
  if (!setting.sharing && !setting.degrees.plain()) {
    setting.sharing = Sharing::fifo;
    with_turns.notes.emplace_back(
        "messages take turns on shared links (--sharing fifo), since fair rates, the default with "
        "degrees, have no cycle that repeats exactly");
  }
  OpenedCase opened = opened_case(with_turns);
  check_one_pipeline(opened.asked, "a bound");
  for (std::string& note : setting_notes(opened.asked)) {
    opened.setting.notes.push_back(std::move(note));
  }
  BoundAnswer answered{std::move(opened.setting), std::move(opened.asked)};
  answered.bound = bound_of(answered.asked);
  return answered;
}

}  // namespace stageline::answers
