// Interleaved 1F1B (Narayanan et al. 2021, Megatron-LM, arXiv 2104.04473). Every device has v
// chunks of the model, stage k on device k mod p, so that a micro-batch loops v times through all
// devices. Micro-batches go in groups (Megatron's microbatch_group_size_per_vp_stage, p by
// default): a group through a device's first chunk, then through its second, ...; backwards take
// the chunks the other way round. A device does 2(p-1-r) + (v-1)·group forwards to warm up, then
// one forward and one backward in turn. The bubble is that of 1F1B over v; a device holds up to
// min(mv, 2(p-1-r) + (v-1)·group + 1) chunks. Groups have at least p micro-batches, the last one
// too (which may be smaller than the others): the first has to be back when its next turn comes.
//
// Smaller groups, from p/2 on, go in the order of grouped interleaving (Wan et al. 2025,
// PipeOffload, arXiv 2503.01328; schedulers/parts/grouped_order.hpp, B in place of its I and W):
// p-1-r + (v-1)·group forwards to warm up, so that a device holds p + (v-1)·group chunks at most,
// half as many. There B on its way back is behind its slots, so that a device waits for it:
// interleaved_zb:group= hands I on before W.
//
// overlap=experts is Megatron-Core's overlap_moe_expert_parallel_comm (core/pipeline_parallel/
// combined_1f1b.py and schedules.py, 2026-11): one more forward to warm up, then every forward runs
// with a backward of another micro-batch as an overlapped pair, which hides the experts' exchange.
//
// Where a digit comes back on a device, it is the micro-batch's next chunk.
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1
//   0 |01230123456   aa7bb 4cc5dd6aa7bbcc dd ee ff gg hheeffgghh
//   1 | 012301234  aa5bb6cc7dd4aa5bb6cc7dd ee ff gg hheeffgghh
//   2 |  0123012 aa3bb4cc5dd6aa7bb4cc5dd6ee7ff gg hheeffgghh
//   3 |   01230aa1bb2cc3dd4aa5bb6cc7dd4ee5ff6gg7hheeffgghh
//
// figure: devices 4, microbatches 8, F 1, I 1, W 1, group 2
//   0 |01  0123      aa2bb3  aa4bb5cc4dd5  cc6dd7ee6ff7  ee ff gg hh   gg hh
//   1 | 01  012    aa3bb2  aa3bb4cc5dd4  cc5dd6ee7ff6  ee7ff gg hh   gg hh
//   2 |  01  01  aa2bb3  aa2bb3cc4dd5  cc4dd5ee6ff7  ee6ff7gg hh   gg hh
//   3 |   01  0aa1bb2  aa3bb2cc3dd4  cc5dd4ee5ff6  ee7ff6gg7hh   gg hh
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "schedulers/order.hpp"
#include "schedulers/parts/chunks.hpp"
#include "schedulers/parts/expert_overlap.hpp"
#include "schedulers/parts/grouped_order.hpp"
#include "schedulers/parts/looped_turns.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"

namespace stageline::interleaved_1f1b_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"chunks", "int", "2", "stages on each device"},
    {"group", "int", "auto",
     "micro-batches that go through a chunk before the next chunk's turn, from half as many as "
     "devices; auto: as many as devices"},
    expert_overlap_knob,
};

Placement place(int devices, const Knobs& knobs) {
  const int chunks = number(knobs, "chunks");
  check_chunks("interleaved_1f1b", "chunks", chunks, devices);
  if (devices == 1 && overlaps_experts(knobs)) {
    throw UsageError(
        "interleaved_1f1b: overlap=experts interleaves stages of at least 2 devices, and there is "
        "1; on one device take 1f1b:overlap=experts");
  }
  return looped_placement(devices, chunks);
}

// Smaller than Megatron's: PipeOffload's rule.
bool is_grouped(const Problem& problem) {
  const std::string& text = problem.knobs.at("group");
  const auto devices = static_cast<int>(problem.devices.size());
  if (text == "auto" || number(problem.knobs, "group") >= devices) return false;
  const int group = number(problem.knobs, "group");
  const int least = (devices + 1) / 2;
  if (overlaps_experts(problem.knobs)) {
    throw UsageError(fmt::format(
        "interleaved_1f1b: overlap=experts runs forwards beside backwards in Megatron-Core's order, "
        "whose groups have at least as many micro-batches as devices, {} (group is {}); take "
        "group={}",
        devices, group, devices));
  }
  if (group < least) {
    throw UsageError(fmt::format(
        "interleaved_1f1b: group={} is smaller than half the number of devices, {}, so that one group "
        "in flight would not keep them busy; take group={}, or interleaved_zb:group={}, which then "
        "has several in flight",
        group, devices, least, group));
  }
  return true;
}

// Whether groups of that size leave a last one that is large enough.
bool suits(int microbatches, int group, int devices) {
  const int last = microbatches % group;
  return microbatches >= devices && (last == 0 || last >= devices);
}

int group_of(const Problem& problem) {
  const int devices = static_cast<int>(problem.devices.size());
  const int m = problem.microbatches;
  const int group = problem.knobs.at("group") == "auto" ? devices : number(problem.knobs, "group");
  if (suits(m, group, devices)) return std::min(group, m);
  int below = m - 1;
  while (below > 0 && !suits(below, group, devices)) --below;
  int above = m + 1;
  while (!suits(above, group, devices)) ++above;
  const int groups = m / devices;  // equal ones
  throw UsageError(fmt::format(
      "interleaved_1f1b: {} micro-batches in groups of {} leave a last group of {}, fewer than the "
      "{} devices; take {}{}{}",
      m, group, m % group, devices, below > 0 ? fmt::format("{} or ", below) : "", above,
      groups > 0 && m % groups == 0
          ? fmt::format(", or group={}, as PyTorch's ScheduleInterleaved1F1B", m / groups)
          : ""));
}

Program schedule(const Problem& problem) {
  if (is_grouped(problem)) {
    const auto devices = static_cast<int>(problem.devices.size());
    const int each = std::min(number(problem.knobs, "group"), problem.microbatches);
    return freeze(blank_program(problem, "interleaved_1f1b", WeightRule::flush),
                  grouped_order(problem, grouping_of(devices, each), false));
  }
  const int group = group_of(problem);
  Program program = blank_program(problem, "interleaved_1f1b", WeightRule::flush);
  const int devices = static_cast<int>(program.devices.size());
  const int chunks = program.stages() / devices;
  const bool pairs = overlaps_experts(problem.knobs);
  const std::vector<LoopedTurn> turn = looped_turns(program.microbatches, group, chunks);
  for (int step = 0; step < program.steps; ++step) {
    const auto first = static_cast<std::uint32_t>(step * program.microbatches);
    for (int r = 0; r < devices; ++r) {
      const auto order = [&](int chunk) { return Order(program, chunk * devices + r); };
      const std::int64_t ahead =
          2 * std::int64_t{devices - 1 - r} + std::int64_t{chunks - 1} * group + (pairs ? 1 : 0);
      const std::size_t warm_up = std::min(turn.size(), as_size(ahead));
      for (std::size_t i = 0; i < turn.size() + warm_up; ++i) {
        const LoopedTurn back = i < warm_up ? LoopedTurn{} : turn[i - warm_up];
        Order backwards = order(chunks - 1 - back.chunk);
        const std::uint32_t number = first + static_cast<std::uint32_t>(back.microbatch);
        if (i < turn.size()) {
          Order forwards = order(turn[i].chunk);
          const std::uint32_t next = first + static_cast<std::uint32_t>(turn[i].microbatch);
          if (pairs && i >= warm_up) {
            forwards.pair(next, backwards, number);
            continue;
          }
          forwards.forward(next);
        }
        if (i >= warm_up) backwards.backward(number);
      }
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "interleaved_1f1b",
    "1F1B with several chunks a device, which divide the bubble",
    "Narayanan et al. 2021 (Megatron-LM), arXiv 2104.04473; groups below p: Wan et al. 2025, "
    "arXiv 2503.01328",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::interleaved_1f1b_scheduler
