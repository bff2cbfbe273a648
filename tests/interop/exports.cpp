// Does every program that is written come back in order? For every schedule, from the scheduler and
// from a text, with messages and without: what another tool is given, and we read again, has
// nothing wrong with it, or it is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/check/lint.hpp"
#include "tests/interop/csv.hpp"
#include "tests/text.hpp"
#include "traces/pytorch/lowering.hpp"

namespace stageline::exports_tests {
namespace {

struct Size {
  int microbatches = 0;  // a step
  int steps = 1;
};

struct Source {
  std::string name;
  Program program;
};

// As the command has it: of a schedule on a trace, and of texts that were written before.
std::vector<Source> sources(const Program& scheduled) {
  const auto text = [](const Program& program) { return parse_program(print(program)); };
  const Program updated = add_reductions(add_updates(scheduled));
  std::vector<Source> all{{"trace", scheduled},
                          {"text", text(updated)},
                          {"text with messages", text(add_transfers(updated))}};
  for (const Messages messages : {Messages::blocking, Messages::batched}) {
    Program stricter = updated;
    stricter.settings.messages = messages;
    all.push_back({"text with messages: " + std::string(name(messages)),
                   text(add_transfers(std::move(stricter)))});
  }
  return all;
}

// What the program is without the ops that an exporter places itself.
std::string work_of(Program program) {
  for (auto& list : program.ops) {
    std::erase_if(list, [](Op op) { return op.kind == OpKind::update || cargo_of(op.kind); });
  }
  return test::lists(program);
}

// The first thing that is said against it. Notes do not count, nor what a message costs where it
// stands: where messages block, some orders that finish receive sooner than is good.
std::string said_against(const Program& program) {
  for (const LintFinding& finding : lint(program).findings) {
    if (finding.severity == Severity::note || finding.rule == LintRule::early_receive ||
        finding.rule == LintRule::late_send) {
      continue;
    }
    return with_place(program, finding);
  }
  return "";
}

template <class Check>
void each_program(Check&& check) {
  std::set<std::string> tried;  // many knobs change nothing here
  for (int devices = 2; devices <= 4; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      for (const Size size : {Size{devices, 1}, Size{2 * devices + 1, 1}, Size{devices, 2}}) {
        Program program;
        try {
          const int stages = test::stages_for(spec, devices);
          const Costs costs = uniform_costs(stages, devices, Time{1}, Time{1}, Time{1});
          program = spec.scheduler->schedule(
              test::problem_for(spec, devices, costs, size.microbatches, size.steps));
        } catch (const UsageError&) {
          continue;  // so many devices or micro-batches do not suit the schedule
        }
        Program nameless = program;
        nameless.schedule.clear();
        if (!tried.insert(print(nameless)).second) continue;
        for (const Source& source : sources(program)) {
          const std::string schedule = spelled(spec);
          CAPTURE(schedule);
          CAPTURE(devices);
          CAPTURE(size.microbatches);
          CAPTURE(size.steps);
          CAPTURE(source.name);
          check(source);
        }
      }
    }
  }
}

TEST_CASE("a program text is written without a fault, for every schedule") {
  each_program([](const Source& source) {
    const Program again = parse_program(print(source.program));
    CHECK(again == source.program);
    CHECK(said_against(again) == "");
  });
}

TEST_CASE("PyTorch's schedule CSV is written without a fault or refused, for every schedule") {
  int written = 0;
  int refused = 0;
  int reordered = 0;
  std::set<std::string> checked;  // one file for several sources, mostly
  each_program([&](const Source& source) {
    for (const PytorchForm form : {PytorchForm::compute_only, PytorchForm::compute_comms}) {
      std::string csv;
      try {
        csv = write_pytorch_schedule(source.program, form);
      } catch (const UsageError& error) {
        ++refused;
        CHECK(test::contains(error.what(), "the schedule CSV of PyTorch cannot hold this program"));
        continue;
      }
      ++written;
      const Program again = read_pytorch_schedule(csv).program;
      CHECK(work_of(again) == work_of(source.program));
      if (checked.insert(csv).second) {
        CHECK(said_against(again) == "");
        CHECK(misread_by_pytorch(again) == "");
        CHECK(write_pytorch_schedule(again, form) == csv);
      }
      if (form == PytorchForm::compute_only) continue;
      const std::vector<std::string> notes = lost_in_pytorch(source.program, form);
      const bool moved = std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
        return test::contains(note, "the messages are put in the order of PyTorch's own lowering");
      });
      reordered += moved ? 1 : 0;
    }
  });
  CHECK(written > 200);
  CHECK(refused > 200);
  CHECK(reordered > 20);
}

TEST_CASE("PipeDream's plan of a program does not depend on its messages") {
  each_program([](const Source& source) {
    const auto plan = [](const Program& program) {
      try {
        return write_pipedream_runtime(program);
      } catch (const UsageError& error) {
        return std::string(error.what());
      }
    };
    Program bare = source.program;
    for (auto& list : bare.ops) std::erase_if(list, [](Op op) { return cargo_of(op.kind); });
    CHECK(plan(bare) == plan(source.program));
  });
}

}  // namespace
}  // namespace stageline::exports_tests
