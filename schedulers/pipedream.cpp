// PipeDream (Narayanan et al., SOSP 2019; Harlap et al. 2018, arXiv 1806.03377): 1F1B without a
// flush. Mini-batches stream; every backward is followed by an update, and a backward reads the
// weights that its forward read (stashed; with vertical_sync those that the first stage had). A
// stage may be replicated, "1F1B-RR": mini-batch m goes to replica m mod r, and comes back there.
// Warm-up at stage s with R workers in all: floor((R - 1 - sum of r_i over i < s) / r_s) forwards a
// replica, so that a straight pipeline holds S-s versions of its weights. Of branches each counts
// the workers on its own way. Rules from the runtime's code.
//
// transfer= is the data-transfer mechanism that PipeFB is measured against, on the same order
// (rebuilt): behind F its stash is copied out to the host, before B it is copied in again, in time
// for it where copies overlap with computing. A stage whose backward follows its forward at once
// copies nothing.
//
// figure: stages 4, microbatches 8, F 1, I 1, W 1
//   0 |0123      aa4bb5cc6dd7ee ff gg hh
//   1 | 012    aa3bb4cc5dd6ee7ff gg hh
//   2 |  01  aa2bb3cc4dd5ee6ff7gg hh
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh
//
// figure: devices 4, replicas 3-1, microbatches 9, F 3/1, I 3/1, W 3/1
//   0 |000333aaaaaa      666ddddddgggggg
//   1 |111444   bbbbbb   777eeeeeehhhhhh
//   2 |222555      cccccc888ffffff   iiiiii
//   3 |   0aa1bb2cc3dd4ee5ff6gg7hh8ii
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::pipedream_scheduler {
namespace {

constexpr Knob knobs[] = {
    {"replicas", "straight or r0-r1-…", "straight",
     "devices of each stage, such as 3-1; the pipedream partitioner fills it in"},
    {"vertical_sync", "no|yes", "no",
     "all stages read the weight version that the first stage read for the mini-batch"},
    {"transfer", "none|blocking|half|full", "none",
     "activations through host memory: computing waits; copies in turns; both ways at once "
     "(rebuilt)",
     "the data transfer's rules are rebuilt"},
};

std::vector<int> replicas_of(const std::string& text) {
  std::vector<int> replicas;
  std::string_view rest = text;
  while (true) {
    const int count = take_number<int>(rest).value_or(0);
    if (count < 1 || count > max_parts || !(rest.empty() || rest.front() == '-')) {
      throw UsageError(fmt::format(
          "pipedream: replicas are whole numbers from 1 to {} joined by '-', such as 3-1 (not "
          "\"{}\")",
          max_parts, text));
    }
    replicas.push_back(count);
    if (rest.empty()) return replicas;
    rest.remove_prefix(1);
  }
}

Placement place(int devices, const Knobs& knobs) {
  const std::string& text = knobs.at("replicas");
  if (text == "straight") return straight_placement(devices);
  const std::vector<int> replicas = replicas_of(text);
  const int sum = std::accumulate(replicas.begin(), replicas.end(), 0);
  if (sum != devices) {
    throw UsageError(
        fmt::format("pipedream: replicas={} are {} devices, but there are {}; give --devices {}",
                    text, sum, devices, sum));
  }
  return replicated_placement(replicas);
}

// The list of one replica, warm-up forwards and then B, F in turns, with its copies. Copied in is
// what the next backward reads, while this one runs; or in time for this one, with one buffer.
class Replica {
 public:
  Replica(Program& program, int stage, std::uint32_t first, std::uint32_t step, bool copies)
      : program_(program), stage_(stage), first_(first), step_(step), copies_(copies) {}

  void write(std::uint32_t own, std::uint32_t warm_up) {
    const bool ahead = program_.settings.copies != Copies::blocking;
    for (std::uint32_t i = 0; i < own + warm_up; ++i) {
      if (i < own) {
        add(OpKind::forward, i);
        if (copies_) add(OpKind::offload, i);
      }
      if (i < warm_up) continue;
      const std::uint32_t due = i - warm_up;
      if (copies_ && (!ahead || due == 0)) add(OpKind::prefetch, due);
      if (copies_ && ahead && due + 1 < own) add(OpKind::prefetch, due + 1);
      add(OpKind::backward, due);
    }
  }

 private:
  void add(OpKind kind, std::uint32_t i) {
    const Op op = op_of(kind, stage_, first_ + i * step_);
    nth(program_.ops, device_of(program_.placement, op)).push_back(op);
  }

  Program& program_;
  int stage_;
  std::uint32_t first_;
  std::uint32_t step_;
  bool copies_;
};

// By stage, the workers from it on, on the way that has the most of them.
std::vector<std::uint32_t> workers_behind(const Program& program) {
  std::vector<std::uint32_t> behind(as_size(program.stages()));
  for (int s = program.stages() - 1; s >= 0; --s) {
    for (const StageEdge& edge : program.edges) {
      if (edge.from == s) nth(behind, s) = std::max(nth(behind, s), nth(behind, edge.to));
    }
    nth(behind, s) += static_cast<std::uint32_t>(nth(program.placement.stage, s).replicas.size());
  }
  return behind;
}

Program schedule(const Problem& problem) {
  const bool vertical = problem.knobs.at("vertical_sync") == "yes";
  Program program =
      blank_program(problem, "pipedream", vertical ? WeightRule::vertical_sync : WeightRule::stash);
  const std::string& transfer = problem.knobs.at("transfer");
  program.settings.copies = transfer == "blocking" ? Copies::blocking
                            : transfer == "half"   ? Copies::half
                            : transfer == "full"   ? Copies::full
                                                   : Copies::free;
  const std::uint32_t total = program.total_microbatches();
  const std::vector<std::uint32_t> behind = workers_behind(program);
  for (int s = 0; s < program.stages(); ++s) {
    const auto replicas =
        static_cast<std::uint32_t>(nth(problem.placement.stage, s).replicas.size());
    const std::uint32_t warm_up = (nth(behind, s) - 1) / replicas;
    for (std::uint32_t replica = 0; replica < replicas; ++replica) {
      if (replica >= total) continue;
      const std::uint32_t own = (total - replica + replicas - 1) / replicas;
      Replica(program, s, replica, replicas, program.settings.copies != Copies::free && warm_up > 0)
          .write(own, std::min(warm_up, own));
    }
  }
  return program;
}

}  // namespace

extern const Scheduler entry;
const Scheduler entry = {
    "pipedream",
    "1F1B without flush: stashed weights, an update after every backward",
    "Narayanan et al., SOSP 2019; Harlap et al. 2018, arXiv 1806.03377",
    Synchrony::asynchronous,
    knobs,
    place,
    schedule,
};

}  // namespace stageline::pipedream_scheduler
