// Programs as text: text -> program -> text -> program is the same, and whatever the rules let
// through runs as the reference says.
#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/check/check.hpp"
#include "sim/check/lint.hpp"
#include "sim/engine.hpp"
#include "sim/errors.hpp"
#include "sim/lower/passes.hpp"
#include "sim/program.hpp"
#include "tests/fuzz/runs.hpp"
#include "tests/fuzz/target.hpp"

namespace stageline::fuzz {

void text_and_back(const std::string& input) {
  const Program program = parse_program(input);
  const std::string text = print(program);
  hold(parse_program(text) == program, "text -> program -> text -> another program");
  hold(print(parse_program(text)) == text, "another text of the same program");
  int errors = 0;
  check(program, [&](const LintFinding& finding) {
    hold(!finding.message.empty(), "a finding without a message");
    ++errors;
  });
  try {
    validate(program);
    hold(errors == 0, "check() has errors, validate() none");
  } catch (const ProgramError&) {
    hold(errors > 0, "validate() has an error, check() none");
  }
}

void run_program_text(const std::string& input) {
  TextPlaces places;
  const Program given = parse_program(input, places);
  std::size_t ops = 0;
  for (const auto& list : given.ops) ops += list.size();
  if (ops > 400 || given.stages() > 40 || given.total_microbatches() > 100) return;
  lint(given, {&places, nullptr, 20});
  validate(given);
  // Times of a few picoseconds that differ by stage and kind.
  Costs costs = unit_costs(given);
  for (std::size_t s = 0; s < costs.stage.size(); ++s) {
    const auto n = static_cast<std::int64_t>(s);
    StageCosts& stage = costs.stage[s];
    stage.forward = Time{1 + n % 3};
    stage.input_grad = Time{n % 4};
    stage.weight_grad = Time{2 + n % 2};
    stage.backward = Time{3 + n % 5};
    stage.recompute = Time{n % 2};
    stage.update = Time{n % 3};
  }
  const Program program = complete(given, costs);
  validate(program);
  check_run(program, costs);
}

}  // namespace stageline::fuzz
