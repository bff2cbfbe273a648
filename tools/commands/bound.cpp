// stageline bound: the cycle that limits a schedule's pace, and the distance to the lower bounds.
#include <memory>
#include <utility>

#include "schedulers/aliases.hpp"
#include "tools/answers/bounded.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/text/bound.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::cli {
namespace {

std::vector<std::string> notes_of(const CommonFlags& flags, const answers::BoundAnswer& answered) {
  if (!answered.bound) return {};
  std::vector<std::string> said = read_as_notes(flags.schedules);
  if (std::string note = rebuilt_note(answered.asked); !note.empty()) {
    said.push_back(std::move(note));
  }
  for (std::string& note : notes(answered.setting)) said.push_back(std::move(note));
  return said;
}

int run_bound(const CommonFlags& flags) {
  answers::BoundQuestion question{case_question(flags, "bound")};
  question.notes = notes_on_unread(flags, "bound", Shows::time);
  const answers::BoundAnswer answered = answer(question);
  Forms forms;
  forms.json = [&] { return report::bound_json(answered); };
  forms.text = [&] { return report::bound_text(answered, text_width(), flags.quiet); };
  forms.notes = [&] { return notes_of(flags, answered); };
  deliver({flags.json, {}, {}, flags.quiet}, forms);
  return answered.bound ? 0 : 1;
}

void add_bound(Flags command) {
  const auto flags = std::make_shared<CommonFlags>();
  add_problem_flags(command, *flags, Many::no, Many::no, Given::no);
  add_degree_flags(command, *flags);
  add_output_flags(command, *flags);
  command.footer(
      "Example:\n  stageline bound resnet50-cpu --schedule pipedream --devices 4\n"
      "With degrees: collectives inside F, I and W are part of their times, and one pipeline stands "
      "for all replicas.\n"
      "Exit code 1: the schedule has no rounds that repeat exactly.");
  command.runs([flags] { return run_bound(*flags); });
}

}  // namespace

extern const Command bound_command;
const Command bound_command = {
    "bound", "The exact steady pace of a schedule, the cycle that limits it, and lower bounds",
    add_bound, ""};

}  // namespace stageline::cli
