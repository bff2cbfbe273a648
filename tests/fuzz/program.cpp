// Programs as text: text -> program -> text -> program is the same, and whatever the rules let
// through runs as the reference says.
#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/base/errors.hpp"
#include "sim/check/check.hpp"
#include "sim/check/lint.hpp"
#include "sim/deadlock.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "sim/program.hpp"
#include "tests/fuzz/runs.hpp"
#include "tests/fuzz/target.hpp"
#include "traces/programs.hpp"

namespace stageline::fuzz {
namespace {

bool is_small(const Program& program) {
  std::size_t ops = 0;
  for (const auto& list : program.ops) ops += list.size();
  return ops <= 400 && program.stages() <= 40 && program.total_microbatches() <= 100;
}

// What a format cannot hold is refused; whatever `write` gives is returned.
template <class Write>
std::string written(Write&& write) {
  try {
    return write();
  } catch (const UsageError&) {
  } catch (const ProgramError&) {
  } catch (const Deadlock&) {
  }
  return {};
}

Program read_back(const std::string& csv) {
  try {
    Program program = read_pytorch_schedule(csv).program;
    validate(program);
    return program;
  } catch (const std::runtime_error& error) {
    broken("our own CSV is refused: " + std::string(error.what()) + "\n" + csv);
  }
}

}  // namespace

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
  if (!is_small(given)) return;
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

void write_program_text(const std::string& input) {
  const Program given = parse_program(input);
  if (!is_small(given)) return;
  validate(given);
  for (const PytorchForm form : {PytorchForm::compute_only, PytorchForm::compute_comms}) {
    const std::string csv = written([&] { return write_pytorch_schedule(given, form); });
    if (csv.empty()) continue;
    lost_in_pytorch(given, form);
    const Program program = read_back(csv);
    hold(write_pytorch_schedule(program, form) == csv, "CSV -> program -> another CSV");
  }
  written([&] { return write_pipedream_runtime(given); });
  written([&] { return write_chakra(given, unit_costs(given)).groups; });
}

}  // namespace stageline::fuzz
