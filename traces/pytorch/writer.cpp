// Writes PyTorch's schedule CSV; traces/pytorch/reader.cpp reads it.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "traces/programs.hpp"
#include "traces/pytorch/lowering.hpp"

namespace stageline {
namespace {

bool is_compute(OpKind kind) {
  return kind == OpKind::forward || kind == OpKind::backward || kind == OpKind::input_grad ||
         kind == OpKind::weight_grad;
}

bool is_neighbour_message(OpKind kind) {
  return kind == OpKind::send_forward || kind == OpKind::receive_forward ||
         kind == OpKind::send_backward || kind == OpKind::receive_backward;
}

bool has_messages(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(), [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](Op op) { return cargo_of(op.kind); });
  });
}

std::string device_list(const Program& program, const std::vector<int>& devices) {
  std::string text;
  for (const int device : devices) {
    text += text.empty() ? "" : ", ";
    text += nth(program.devices, device);
  }
  return text;
}

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError(fmt::format(
      "the schedule CSV of PyTorch cannot hold this program: {}; write it as slp, our own text",
      what));
}

void check_placement(const Program& program) {
  for (int s = 0; s < program.stages(); ++s) {
    const StagePlace& place = nth(program.placement.stage, s);
    if (place.apart()) {
      refuse(
          fmt::format("each stage lives on one rank there, "
                      "and stage {} has its forward and its backward on different devices",
                      s));
    }
    if (place.replicas.size() > 1) {
      refuse(fmt::format("each stage lives on one rank there, and stage {} is on {} devices ({})",
                         s, place.replicas.size(), device_list(program, place.replicas)));
    }
  }
  const std::vector<StageEdge> chain = chain_edges(program.stages());
  for (const StageEdge edge : program.edges) {
    if (std::find(chain.begin(), chain.end(), edge) != chain.end()) continue;
    refuse(fmt::format("there each stage feeds only the next one, and stage {} feeds stage {}",
                       edge.from, edge.to));
  }
  if (program.edges != chain) {
    refuse("there each stage feeds the next one, and here some do not");
  }
}

void check_settings(const Program& program) {
  if (program.steps > 1) {
    refuse(fmt::format("it is of one step, and the program has {} (--steps 1 makes one)",
                       program.steps));
  }
  const ProgramSettings& settings = program.settings;
  if (settings.clock != Clock::free) refuse("it cannot express \"clock: lockstep\"");
  const auto says = [](const std::vector<int>& values, int none) {
    return std::any_of(values.begin(), values.end(), [&](int value) { return value != none; });
  };
  if (settings.sequence_chunks != 1) refuse("it cannot express \"sequence_chunks:\"");
  if (!settings.costs.empty()) refuse("it cannot express \"costs:\"");
  if (!settings.lengths.empty()) refuse("it cannot express \"lengths:\"");
  if (says(settings.delay, -1)) refuse("it cannot express \"delays:\"");
  if (says(settings.window, 0)) refuse("it cannot express \"windows:\"");
}

void check_ops(const Program& program) {
  std::uint32_t losses = 0;
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    bool works = false;
    std::set<std::pair<int, std::uint32_t>> input_grads;
    for (const Op op : program.ops[d]) {
      works = works || is_compute(op.kind);
      if (op.kind == OpKind::update || is_neighbour_message(op.kind)) continue;
      if (!is_compute(op.kind)) {
        refuse(fmt::format("it cannot express {} ({})", print(op), program.devices[d]));
      }
      // A backward takes the loss at the position of its micro-batch in their order
      // (_PipelineSchedule._maybe_get_loss).
      if (op.kind == OpKind::forward && op.stage + 1 == program.stages() &&
          op.microbatch != losses++) {
        Op due = op;
        due.microbatch = losses - 1;
        refuse(
            fmt::format("its runtime numbers the losses as the last stage makes them, and {} on "
                        "{} is where {} has to be",
                        print(op), program.devices[d], print(due)));
      }
      if (op.kind == OpKind::input_grad) input_grads.insert({op.stage, op.microbatch});
      if (op.kind == OpKind::weight_grad && input_grads.count({op.stage, op.microbatch}) == 0) {
        refuse(fmt::format("it needs an I before every W, and {} on {} has none", print(op),
                           program.devices[d]));
      }
    }
    if (!works) {
      refuse(fmt::format("every rank has a stage there, and {} does nothing", program.devices[d]));
    }
  }
}

Program without(Program program, bool messages) {
  for (auto& list : program.ops) {
    std::erase_if(list,
                  [&](Op op) { return !is_compute(op.kind) && (messages || !cargo_of(op.kind)); });
  }
  return program;
}

// Throws Deadlock where the program cannot finish.
TaskGraph unit_graph(const Program& program) {
  TaskGraph graph =
      compile(program, uniform_costs(program.stages(), static_cast<int>(program.devices.size()),
                                     Time{1}, Time{1}, Time{1}));
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    graph.duration[task] = Time{lane_of(graph.op[task].kind) == LaneKind::compute ? 1 : 0};
  }
  return graph;
}

std::string pair_text(Op first, Op second) {
  return fmt::format("({};{}){}", print(first), print(second), overlap_mark);
}

// Every rank's cells, each in the slot in which it runs when every cell takes one slot.
std::string grid(const Program& program) {
  const TaskGraph graph = unit_graph(program);
  const TaskTimes times = sweep(graph);
  std::vector<std::string> rows(program.devices.size());
  std::vector<std::int64_t> written(program.devices.size());  // slots, by rank
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const auto rank = as_size(graph.lanes[lane].device);
    for (std::uint32_t i = graph.lane_begin[lane]; i < graph.lane_begin[lane + 1]; ++i) {
      const std::uint32_t task = graph.lane_task[i];
      const Op op = graph.op[task];
      const std::int64_t slot = start_of(graph, times, task).count();
      // A comma closes every slot but the last.
      rows[rank].append(as_size(slot - written[rank]) + (written[rank] > 0 ? 1U : 0U), ',');
      written[rank] = slot + 1;
      rows[rank] += op.overlapped ? pair_text(op, graph.partner[task]) : print(op);
    }
  }
  std::string text;
  for (const std::string& row : rows) text.append(row).append("\n");
  return text;
}

// Reduces behind the last gradient of each stage, as PyTorch's lowering does; ours waits for the
// last of the device.
Program reduced_by_stage(Program program) {
  for (auto& list : program.ops) {
    std::map<int, std::ptrdiff_t> last;  // by stage, position
    std::set<int> updated;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind == OpKind::update) updated.insert(list[i].stage);
      if (list[i].kind != OpKind::backward && list[i].kind != OpKind::weight_grad) continue;
      const bool first_of_pair = list[i].overlapped;
      last[list[i].stage] = static_cast<std::ptrdiff_t>(i) + (first_of_pair ? 1 : 0);
    }
    std::map<std::ptrdiff_t, int> stage_at;
    for (const auto& [stage, at] : last) {
      if (updated.count(stage) == 0) stage_at[at] = stage;
    }
    for (auto found = stage_at.rbegin(); found != stage_at.rend(); ++found) {
      Op update;
      update.kind = OpKind::update;
      update.stage = static_cast<std::uint16_t>(found->second);
      list.insert(list.begin() + found->first + 1, update);
    }
  }
  return program;
}

// One step, flushed, with one reduction per stage.
Program reduced_once(Program program) {
  if (program.settings.weights != WeightRule::flush) {
    // These updates follow every backward, but the CSV has one reduction per step.
    program = without(std::move(program), false);
    program.settings.weights = WeightRule::flush;
  }
  return reduced_by_stage(std::move(program));
}

std::string with_messages(const Program& program) {
  Program full = reduced_once(program);
  unit_graph(full);  // throws if it cannot finish
  if (!has_messages(full) || !misread_by_pytorch(full).empty()) {
    full = lowered_as_pytorch(std::move(full));
  }
  std::string text;
  for (const auto& list : full.ops) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      text += i == 0 ? "" : ",";
      if (list[i].kind == OpKind::update) {
        text += fmt::format("{}REDUCE_GRAD", list[i].stage);
      } else if (list[i].overlapped) {
        text += pair_text(list[i], list[i + 1]);
        ++i;
      } else {
        text += print(list[i]);
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string write_pytorch_schedule(const Program& program, PytorchForm form) {
  check_placement(program);
  check_settings(program);
  check_ops(program);
  validate(program);
  return form == PytorchForm::compute_comms ? with_messages(program) : grid(without(program, true));
}

std::vector<std::string> lost_in_pytorch(const Program& program, PytorchForm form) {
  std::vector<std::string> lost;
  if (form == PytorchForm::compute_comms) {
    const std::string why = misread_by_pytorch(reduced_once(program));
    if (!why.empty()) {
      lost.push_back(
          fmt::format("the messages are put in the order of PyTorch's own lowering: "
                      "its ranks match them by the order in which they post them, and {}",
                      why));
    }
  }
  const ProgramSettings& settings = program.settings;
  if (settings.weights != WeightRule::flush) {
    lost.push_back(fmt::format(
        "the CSV does not record \"weights: {}\"; its reader updates once, at the end of the step",
        name(settings.weights)));
  }
  if (settings.correction != "none") {
    lost.push_back(fmt::format("the CSV does not record \"correction: {}\"", settings.correction));
  }
  if (settings.data_ranks != 1) {
    lost.push_back(fmt::format("the CSV does not record \"data_ranks: {}\"", settings.data_ranks));
  }
  if (settings.messages != Messages::async) {
    lost.push_back(
        fmt::format("the CSV does not record \"messages: {}\"", name(settings.messages)));
  }
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    if (program.devices[d] == fmt::format("gpu{}", d)) continue;
    lost.push_back(
        fmt::format("the CSV does not name devices; {} is rank {}", program.devices[d], d));
  }
  if (std::find(program.independent_w.begin(), program.independent_w.end(), true) !=
      program.independent_w.end()) {
    lost.emplace_back("the CSV does not record \"independent_w:\"; there every W waits for its I");
  }
  return lost;
}

}  // namespace stageline
