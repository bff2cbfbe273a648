// Small runs to draw, simulated from program text.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "sim/program.hpp"
#include "tools/report/timeline/drawing.hpp"

namespace stageline::examples {

/// Everything drawn of a program on equal stages: F and I and W of `unit` each, messages of
/// `transfer`.
inline report::Drawing drawing_of(const std::string& text, Time unit, Time transfer = Time{}) {
  report::Drawing drawing;
  Program program = parse_program(text);
  const Costs costs = uniform_costs(program.stages(), static_cast<int>(program.devices.size()),
                                    unit, unit, unit, transfer);
  program = complete(std::move(program), costs);
  const TaskGraph graph = compile(program, costs);
  const TaskTimes times = simulate(graph);
  drawing.timeline = timeline_of(program, graph, times);
  drawing.memory = memory_of(program, costs, drawing.timeline, Curves::all);
  drawing.idle = metrics_of(program, graph, times).idle;
  drawing.versions = versions_of(program, drawing.timeline);
  drawing.program = std::move(program);
  drawing.title = "A run";
  return drawing;
}

/// 1F1B on `stages` devices as program text.
inline std::string one_f_one_b(int stages, int microbatches, const std::string& weights = "flush") {
  std::string text =
      fmt::format("stageline-program 1\nschedule: 1f1b\nmicrobatches: {}\nsteps: 1\nweights: {}\n",
                  microbatches, weights);
  for (int s = 0; s < stages; ++s) text += fmt::format("stage {0}: gpu{0}\n", s);
  for (int s = 0; s < stages; ++s) {
    text += fmt::format("gpu{}:", s);
    int forward = 0;
    for (; forward < std::min(microbatches, stages - s - 1); ++forward) {
      text += fmt::format(" {}F{}", s, forward);
    }
    for (int backward = 0; backward < microbatches; ++backward) {
      if (forward < microbatches) text += fmt::format(" {}F{}", s, forward++);
      text += fmt::format(" {}B{}", s, backward);
    }
    text += "\n";
  }
  return text;
}

inline constexpr Time millisecond{1'000'000'000};

}  // namespace stageline::examples
