// Counts updates, and builds blank programs, stage graphs and product indices.
#include "sim/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/problem.hpp"

namespace stageline {

std::string_view name(WeightRule rule) {
  switch (rule) {
    case WeightRule::flush:
      return "flush";
    case WeightRule::stash:
      return "stash";
    case WeightRule::vertical_sync:
      return "vertical_sync";
    case WeightRule::double_buffer:
      return "double_buffer";
    case WeightRule::latest:
      return "latest";
  }
  return "";
}

std::string_view name(Clock clock) {
  switch (clock) {
    case Clock::free:
      return "free";
    case Clock::lockstep:
      return "lockstep";
  }
  return "";
}

std::string_view name(Copies copies) {
  switch (copies) {
    case Copies::free:
      return "free";
    case Copies::issued:
      return "issued";
    case Copies::full:
      return "full";
    case Copies::half:
      return "half";
    case Copies::blocking:
      return "blocking";
  }
  return "";
}

std::string_view name(RecomputeStart start) {
  switch (start) {
    case RecomputeStart::early:
      return "early";
    case RecomputeStart::late:
      return "late";
  }
  return "";
}

std::string_view name(Messages messages) {
  switch (messages) {
    case Messages::async:
      return "async";
    case Messages::blocking:
      return "blocking";
    case Messages::batched:
      return "batched";
  }
  return "";
}

int microbatches_per_update(const Program& program, int stage) {
  if (updates_by_step(program.settings.weights)) return program.microbatches;
  const StagePlace& place = nth(program.placement.stage, stage);
  return static_cast<int>(place.replicas.size());
}

int updates(const Program& program, int stage) {
  const int size = microbatches_per_update(program, stage);
  return (static_cast<int>(program.total_microbatches()) + size - 1) / size;
}

void refuse_forwards(const std::string& what, double forwards, const std::string& fewer) {
  // Bytes of a forward of 1F1B without messages, when it is drawn; messages, long orders take more.
  constexpr double bytes_of_one = 400;
  const double bytes = std::min(forwards * bytes_of_one, 1e18);
  throw UsageError(fmt::format(
      "{} are more than the {} forwards that are simulated at a time, and would take {} of memory "
      "or more; ask for fewer {}",
      what, most_forwards, print(Bytes{static_cast<std::int64_t>(bytes)}), fewer));
}

Program blank_program(const Problem& problem, std::string schedule, WeightRule weights) {
  if (problem.microbatches < 1) {
    throw UsageError(
        fmt::format("--microbatches must be at least 1 (it is {})", problem.microbatches));
  }
  if (problem.steps < 1) {
    throw UsageError(fmt::format("--steps must be at least 1 (it is {})", problem.steps));
  }
  const int stages = problem.placement.stages();
  const double forwards = static_cast<double>(problem.microbatches) * problem.steps * stages;
  if (forwards > most_forwards) {
    refuse_forwards(
        fmt::format("{} micro-batches × {} step{} × {} stage{}", problem.microbatches,
                    problem.steps, problem.steps == 1 ? "" : "s", stages, stages == 1 ? "" : "s"),
        forwards, "micro-batches or steps");
  }
  Program program;
  program.schedule = std::move(schedule);
  program.microbatches = problem.microbatches;
  program.steps = problem.steps;
  program.settings.weights = weights;
  program.devices = problem.devices;
  program.placement = problem.placement;
  for (const EdgeCosts& edge : problem.costs.edges) program.edges.push_back(edge.edge);
  program.independent_w.assign(problem.placement.stage.size(), false);
  program.ops.resize(problem.devices.size());
  return program;
}

}  // namespace stageline
