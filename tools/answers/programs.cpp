#include "tools/answers/programs.hpp"

#include <utility>

#include "sim/lower/passes.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/study.hpp"

namespace stageline::answers {
namespace {

Program checked_compute_of(const Case& asked) {
  const Layout layout = checked_layout(asked);
  const Costs costs = costs_of(asked, layout);
  if (asked.program) validate(*asked.program);  // before any pass relies on it
  Program program = complete(program_of(asked, layout, costs, asked.steps), costs);
  validate(program);
  compile(program, costs);
  keep_compute(program);
  return program;
}

Program compute_of(const Case& asked) {
  const Layout layout = lay_out(asked);
  Program program = program_of(asked, layout, costs_of(asked, layout), asked.steps);
  keep_compute(program);
  return program;
}

}  // namespace

ProgramAnswer answer(const ProgramQuestion& question) {
  OpenedCase opened = opened_case(question);
  if (opened.asked.steps == 0) opened.asked.steps = 1;
  ProgramAnswer found{std::move(opened.setting), std::move(opened.asked), {}};
  switch (question.of) {
    case ProgramOf::run:
      found.outcome = study(found.asked);
      found.program = found.outcome->program;
      break;
    case ProgramOf::checked_compute:
      found.program = checked_compute_of(found.asked);
      break;
    case ProgramOf::compute:
      found.program = compute_of(found.asked);
      break;
  }
  return found;
}

Costs costs_of_program(const SettingQuestion& question) {
  const Case asked = opened_case(question).asked;
  return costs_of(asked, lay_out(asked));
}

}  // namespace stageline::answers
