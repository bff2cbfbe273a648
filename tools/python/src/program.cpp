// Programs as text and as lists of ops.
#include <fmt/core.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "sim/base/errors.hpp"
#include "sim/check/lint.hpp"
#include "sim/program.hpp"
#include "sim/text/visible.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/python/src/inputs.hpp"
#include "tools/python/src/interrupt.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

std::vector<std::vector<std::string>> ops_of(const Program& program) {
  std::vector<std::vector<std::string>> lists;
  for (const std::vector<Op>& ops : program.ops) {
    std::vector<std::string>& list = lists.emplace_back();
    for (const Op op : ops) list.push_back(print(op));
  }
  return lists;
}

// Whether a program's text that says it is read again, with that name.
bool is_schedule_name(const std::string& name) {
  try {
    const std::string text =
        fmt::format("stageline-program 1\nschedule: {}\nmicrobatches: 1\nstage 0: a\na:\n", name);
    return parse_program(text).schedule == name;
  } catch (const ProgramError&) {
    return false;
  }
}

void name_schedule(Program& program, const std::string& name) {
  if (!is_schedule_name(name)) {
    throw UsageError(fmt::format(
        "schedule: its name is one line without a # and without blanks at its ends (it is \"{}\")",
        name));
  }
  program.schedule = name;
}

Program open_program(const std::string& path) {
  Program program = read_program(path, /*quiet=*/true);
  if (program.schedule.empty() && is_schedule_name(path)) program.schedule = path;
  return program;
}

nb::object place_of(int place, int least) { return place >= least ? nb::cast(place) : nb::none(); }

nb::list findings_of(const Lint& lint) {
  nb::list findings;
  for (const LintFinding& finding : lint.findings) {
    nb::dict one;
    one["severity"] = name(finding.severity);
    one["rule"] = name(finding.rule);
    one["message"] = finding.message;
    one["device"] = place_of(finding.device, 0);
    one["position"] = place_of(finding.position, 0);
    one["stage"] = place_of(finding.stage, 0);
    one["line"] = place_of(finding.line, 1);
    one["column"] = place_of(finding.column, 1);
    one["figure"] = finding.figure;
    findings.append(one);
  }
  return findings;
}

nb::list lint_text(const std::string& text) {
  return findings_of(without_lock([&] {
    TextPlaces places;
    const Program program = parse_program(text, places);
    LintOptions options;
    options.places = &places;
    return lint(program, options);
  }));
}

}  // namespace

void bind_program(nb::module_& module) {
  nb::class_<Program> program(module, "Program",
                              "The ordered ops of each device, with their settings.");
  program.attr("__hash__") = nb::none();  // as of all that can be changed, and compared by value
  program.def(nb::init<>())
      .def_static(
          "parse", [](const std::string& text) { return parse_program(text); }, "text"_a,
          "From text; ProgramError has line and column.")
      .def_static("read", &open_program, "path"_a,
                  "From a file in any format that the command reads.")
      .def_prop_rw(
          "schedule", [](const Program& self) { return self.schedule; }, &name_schedule,
          "Its origin: free text of one line, without a #.")
      .def_prop_ro(
          "microbatches", [](const Program& self) { return self.microbatches; }, "In a step.")
      .def_prop_ro("steps", [](const Program& self) { return self.steps; })
      .def_prop_ro("stages", &Program::stages)
      .def_prop_ro(
          "devices", [](const Program& self) { return self.devices; }, "Names.")
      .def_prop_ro(
          "weights", [](const Program& self) { return name(self.settings.weights); },
          "The rule of weight versions.")
      .def_prop_ro("ops", &ops_of, "By device: ops such as \"0F3\", in order (a copy).")
      .def(
          "validate", [](const Program& self) { without_lock([&] { validate(self); }); },
          "Raises ProgramError unless each stage does the work of each micro-batch once, in place.")
      .def(
          "__eq__", [](const Program& self, const Program& other) { return self == other; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__str__", [](const Program& self) { return print(self); })
      .def("__repr__", [](const Program& self) {
        std::size_t ops = 0;
        for (const std::vector<Op>& list : self.ops) ops += list.size();
        return fmt::format(
            "<stageline.Program {}: {} stages on {} devices, {} micro-batches, {} "
            "ops>",
            visible(self.schedule), self.stages(), self.devices.size(), self.total_microbatches(),
            ops);
      });
  module.def(
      "lint",
      [](const Program& program) {
        return findings_of(without_lock([&] { return lint(program); }));
      },
      "program"_a, nb::sig("def lint(program: Program) -> list[dict[str, typing.Any]]"));
  module.def("lint_text", &lint_text, "text"_a,
             nb::sig("def lint_text(text: str) -> list[dict[str, typing.Any]]"));
}

}  // namespace stageline::python
