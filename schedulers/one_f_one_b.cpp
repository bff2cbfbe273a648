// 1F1B with flush (DAPPLE, Fan et al. 2020, arXiv 2007.01045; PipeDream-Flush, Narayanan et al.
// 2020, arXiv 2006.09503): a device p-1-r from the end does that many forwards to warm up, then one
// forward and one backward in turn, then the backwards that are left. It takes as long as GPipe,
// but holds at most p-r micro-batches instead of m. Where the stages are no chain, the end is the
// farthest that a stage leads to (schedulers/parts/stages_behind.hpp).
//
// overlap=experts is Megatron-Core's overlap_moe_expert_parallel_comm without a pipeline
// (combined_1f1b_schedule_for_no_pipelining, core/pipeline_parallel/combined_1f1b.py, 2026-11): one
// forward, then every forward runs with the backward of the micro-batch before it as an overlapped
// pair, which hides the experts' exchange.
//
// stashes=paired is BPipe: copies between devices keep stashes even
// (schedulers/parts/paired_stashes.hpp); the order of the forwards and backwards stays.
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1
//   0 |0123      aa4bb5cc6dd7ee ff gg hh
//   1 | 012    aa3bb4cc5dd6ee7ff gg hh
//   2 |  01  aa2bb3cc4dd5ee6ff7gg hh
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh
//
// vocabulary=one_barrier and two_barriers give every device a share of the head, whose passes S and
// T stand between F and B (schedulers/parts/spread_vocabulary.hpp). F of micro-batch 0 is drawn as
// 0 and B as aa; S as 0a and T as A with one barrier, as 0 and a with two.
//
// figure: devices 4, microbatches 6, F 1, I 1, W 1, vocabulary one_barrier
//   0 |012 0a3 1bA4  2c  aaB53dbbC4e ccD5f ddE eeFff
//   1 | 01 0a2 1b3A  2caa4B3dbb5C4eccD 5fddE eeFff
//   2 |  0 0a1 1b2Aaa2c3Bbb3d4Ccc4e5Ddd5fE eeFff
//   3 |   00a 11baaA22cbbB33dccC44eddD55feeEffF
//
// figure: devices 3, F 1/1/1/1/1/1/0, I 1/1/1/0, W 1/1/1/1/1/1/0, vocabulary two_barriers
//   0 |01 02 1a3 2b4  3caa54dbb65ecc76fdd 7geehff gg hh
//   1 | 0 01 1a2 2b3aa3c4bb4d5cc5e6dd6f7ee7g ffhgg hh
//   2 |  00 11a 22aab33bbc44ccd55dde66eef77ffggghhh
#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "schedulers/order.hpp"
#include "schedulers/parts/expert_overlap.hpp"
#include "schedulers/parts/paired_stashes.hpp"
#include "schedulers/parts/spread_vocabulary.hpp"
#include "schedulers/parts/stages_behind.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::one_f_one_b_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"recompute", "never|always", "never",
     "run the forward again before each backward, and keep only each stage's input"},
    expert_overlap_knob,
    vocabulary_knob,
    stashes_knob,
};

// Megatron-Core pairs forwards and backwards on one device or with interleaved stages
// (virtual_pipeline_model_parallel_size must be given where the pipeline has several).
Placement place(int devices, const Knobs& knobs) {
  if (devices > 1 && overlaps_experts(knobs)) {
    throw UsageError(fmt::format(
        "1f1b: overlap=experts takes 1 device or interleaved stages, as Megatron-Core does, and "
        "there are {} devices; take interleaved_1f1b:overlap=experts",
        devices));
  }
  const VocabularyBarriers barriers = vocabulary_barriers(knobs);
  if (barriers == VocabularyBarriers::whole) {
    return pairs_stashes(knobs) ? paired_placement(devices) : straight_placement(devices);
  }
  if (pairs_stashes(knobs)) {
    throw UsageError(fmt::format(
        "1f1b: stashes=paired moves stashes of plain 1F1B, and vocabulary={} holds others beside "
        "them; leave out one of the two",
        knobs.at("vocabulary")));
  }
  if (overlaps_experts(knobs)) {
    throw UsageError(fmt::format(
        "1f1b: overlap=experts pairs forwards with backwards, and vocabulary={} orders them around "
        "passes of the head; leave out one of the two",
        knobs.at("vocabulary")));
  }
  return spread_placement(devices, barriers);
}

Program schedule(const Problem& problem) {
  Program program = blank_program(problem, "1f1b", WeightRule::flush);
  const bool recompute = problem.knobs.at("recompute") == "always";
  if (vocabulary_barriers(problem.knobs) != VocabularyBarriers::whole) {
    return spread_order(problem, std::move(program), recompute);
  }
  const bool pairs = overlaps_experts(problem.knobs);
  const int m = program.microbatches;
  const std::vector<int> behind = stages_behind(program.edges, program.stages());
  for (int s = 0; s < program.stages(); ++s) {
    const int warm_up = std::min(nth(behind, s) + (pairs ? 1 : 0), m);
    Order order(program, s);
    for (int step = 0; step < program.steps; ++step) {
      const auto first = static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(m);
      for (int i = 0; i < m + warm_up; ++i) {
        const std::uint32_t next = first + static_cast<std::uint32_t>(i);
        const bool both = pairs && i >= warm_up && i < m;
        if (i < m && !both) order.forward(next);
        if (i < warm_up) continue;
        const std::uint32_t back = first + static_cast<std::uint32_t>(i - warm_up);
        if (recompute) order.recompute(back);
        if (both) {
          order.pair(next, order, back);
        } else {
          order.backward(back);
        }
      }
    }
  }
  if (pairs_stashes(problem.knobs)) move_stashes(program);
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "1f1b",
    "warm up, one forward and one backward in turn, flush",
    "Fan et al. 2020 (DAPPLE), arXiv 2007.01045; Narayanan et al. 2020, arXiv 2006.09503",
    Synchrony::synchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::one_f_one_b_scheduler
