// Orders the ranks, numbers their stages, and keeps the steps that are complete on all of them.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

bool is_compute(Op op) { return lane_of(op.kind) == LaneKind::compute; }

// Names the op that a step lacks; empty when the step is complete.
using Done = std::set<std::tuple<std::int64_t, int, OpKind, std::uint32_t>>;
std::string lacking(const Done& done, std::int64_t step, int stages, int microbatches) {
  for (int stage = 0; stage < stages; ++stage) {
    for (int i = 0; i < microbatches; ++i) {
      const auto m = static_cast<std::uint32_t>(i);
      const auto has = [&](OpKind kind) { return done.count({step, stage, kind, m}) > 0; };
      if (!has(OpKind::forward)) return fmt::format("{}F{}", stage, m);
      if (has(OpKind::backward)) continue;
      if (!has(OpKind::input_grad) && !has(OpKind::weight_grad)) {
        return fmt::format("{}B{}", stage, m);
      }
      if (!has(OpKind::weight_grad)) return fmt::format("{}W{}", stage, m);
      if (!has(OpKind::input_grad) && stage > 0) return fmt::format("{}I{}", stage, m);
    }
  }
  return "";
}

void check_style(const KinetoRank& first, const KinetoRank& other) {
  if (other.style == first.style && other.names == first.names &&
      other.named_by_stage == first.named_by_stage) {
    return;
  }
  const bool first_has = first.style == KinetoStyle::actions;
  if (first_has || other.style == KinetoStyle::actions) {
    throw TraceError((first_has ? other : first).file, "",
                     "it has no range that is named like \"PP:2F0\", "
                     "but the profiles of other ranks have");
  }
  throw TraceError(
      other.file, "",
      fmt::format("its ops are not named as those of {} are; profile all ranks alike", first.file));
}

// How the ops of the ranks were recognized, and what of it is assumed.
void note_style(const std::vector<KinetoRank>& ranks, KinetoRun& run) {
  const KinetoRank& first = ranks[0];
  std::string note;
  switch (first.style) {
    case KinetoStyle::actions:
      return;
    case KinetoStyle::plain:
      run.notes.emplace_back(
          "ranges are named \"Forward\" and \"Backward\", without a stage: each rank is assumed to "
          "run the stage of its place among the ranks");
      return;
    case KinetoStyle::named:
      note = fmt::format("ranges are read by the names of {}", first.names);
      break;
    case KinetoStyle::operators:
      note =
          "no range is named as one of a pipeline: forwards and backwards are read from autograd's "
          "operators, split where messages are sent and received";
      break;
  }
  if (!first.named_by_stage) {
    note += "; each rank is assumed to run the stage of its place among the ranks";
  }
  const auto any = [&](bool KinetoRank::*which) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [which](const KinetoRank& rank) { return rank.*which; });
  };
  if (any(&KinetoRank::counted)) note += "; micro-batches are counted in the order of a rank's ops";
  run.notes.push_back(std::move(note));
  if (any(&KinetoRank::one_step)) {
    run.notes.emplace_back(
        "neither a ProfilerStep nor more than one update separates steps: all ops are of one step");
  }
}

}  // namespace

std::string files_of(const std::vector<KinetoRank>& ranks) {
  std::string text;
  for (const KinetoRank& rank : ranks) text += (text.empty() ? "" : ", ") + rank.file;
  return text;
}

// Sorts by the rank that the profile names; where none is named, keeps the order of the files.
void put_in_order(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  const auto unnamed =
      std::find_if(ranks.begin(), ranks.end(), [](const KinetoRank& r) { return !r.rank; });
  if (unnamed != ranks.end()) {
    if (ranks.size() > 1) {
      run.notes.push_back(
          fmt::format("{} does not say its rank (distributedInfo.rank): "
                      "ranks are numbered in the order of the files",
                      unnamed->file));
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = static_cast<int>(i);
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const KinetoRank& a, const KinetoRank& b) { return *a.rank < *b.rank; });
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].ranks != ranks[0].ranks && !ranks[i].ranks.empty() && !ranks[0].ranks.empty()) {
      throw TraceError(ranks[i].file, "/distributedInfo/world_size",
                       fmt::format("it is of a run of {} ranks, and {} of one of {}; "
                                   "give the profiles of one run",
                                   ranks[i].ranks, ranks[0].file, ranks[0].ranks));
    }
    run.ranks.push_back(*ranks[i].rank);
    if (i == 0 || *ranks[i].rank != *ranks[i - 1].rank) continue;
    throw TraceError(ranks[i].file, "/distributedInfo/rank",
                     fmt::format("rank {} is that of {} too; give one profile a rank",
                                 *ranks[i].rank, ranks[i - 1].file));
  }
}

// One-stage schedules do not name the stage: it is the position of the rank.
void number_stages(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    check_style(ranks[0], ranks[i]);
    if (ranks[i].named_by_stage) continue;
    for (KinetoRange& range : ranks[i].ranges) {
      for (Op& op : range.ops) op.stage = static_cast<std::uint16_t>(i);
    }
  }
  check_messages(ranks);
  note_style(ranks, run);
  const KinetoRank& first = ranks[0];
  if (first.named_by_stage || first.ranks.empty()) return;
  const auto world = parse_count(first.ranks);
  if (world && *world > static_cast<std::int64_t>(ranks.size())) {
    run.notes.push_back(fmt::format(
        "{} of the run's {} ranks are given, and taken for one whole pipeline of {} stages",
        ranks.size(), *world, ranks.size()));
  }
}

// By stage: the device that computes it.
std::vector<int> place_stages(const std::vector<KinetoRank>& ranks) {
  std::map<int, int> device_of;
  int stages = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const KinetoRange& range : ranks[i].ranges) {
      for (const Op op : range.ops) {
        const bool to_next = op.kind == OpKind::send_forward || op.kind == OpKind::receive_backward;
        stages = std::max(stages, op.stage + (to_next ? 2 : 1));
        if (!is_compute(op)) continue;
        const auto [at, added] = device_of.try_emplace(op.stage, static_cast<int>(i));
        if (added || at->second == static_cast<int>(i)) continue;
        throw TraceError(
            ranks[i].file, "",
            fmt::format("stage {} runs in {} too; give the ranks of one pipeline (one replica), "
                        "where a stage has one rank",
                        op.stage, nth(ranks, at->second).file));
      }
    }
  }
  std::vector<int> devices;
  for (int stage = 0; stage < stages; ++stage) {
    const auto at = device_of.find(stage);
    if (at == device_of.end()) {
      throw TraceError(files_of(ranks), "",
                       fmt::format("stage {} of {} runs in none of the profiles; "
                                   "give that of every rank of the pipeline",
                                   stage, stages));
    }
    devices.push_back(at->second);
  }
  return devices;
}

int keep_complete_steps(std::vector<KinetoRank>& ranks, int stages, KinetoRun& run) {
  Done done;
  std::uint32_t microbatches = 0;
  std::map<std::int64_t, std::size_t> seen;  // by step: the number of ranks that have it
  for (const KinetoRank& rank : ranks) {
    for (const std::int64_t step : rank.steps) ++seen[step];
    for (const KinetoRange& range : rank.ranges) {
      for (const Op op : range.ops) {
        if (!is_compute(op)) continue;
        microbatches = std::max(microbatches, op.microbatch + 1);
        done.insert({nth(rank.steps, range.step), op.stage, op.kind, op.microbatch});
      }
    }
  }
  if (microbatches == 0) {
    throw TraceError(files_of(ranks), "",
                     "no forward or backward pass lies within a step; profile at least one whole "
                     "step of training");
  }
  if (microbatches > 1U << 20U) {
    throw TraceError(files_of(ranks), "",
                     fmt::format("a micro-batch has the number {}; at most {} are read",
                                 microbatches - 1, 1U << 20U));
  }
  std::vector<std::int64_t> kept;
  std::string why;
  std::string dropped;
  for (const auto& [step, count] : seen) {
    std::string lacks = lacking(done, step, stages, static_cast<int>(microbatches));
    if (count == ranks.size() && lacks.empty()) {
      kept.push_back(step);
      continue;
    }
    if (why.empty()) {
      why = lacks.empty() ? fmt::format("step {} is not in every profile", step)
                          : fmt::format("step {} has no {}", step, lacks);
    }
    dropped += fmt::format("{}{}", dropped.empty() ? "" : ", ", step);
  }
  if (kept.empty()) {
    throw TraceError(files_of(ranks), "",
                     fmt::format("no step is complete on every rank: {}; "
                                 "profile at least one whole step of training",
                                 why));
  }
  if (!dropped.empty()) {
    run.notes.push_back(fmt::format(
        "steps that are not complete on every rank are left out: {} ({})", dropped, why));
  }
  for (KinetoRank& rank : ranks) {
    const std::vector<std::int64_t> steps = std::exchange(rank.steps, kept);
    const auto renumber = [&](auto& list) {
      std::size_t to = 0;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto step = std::lower_bound(kept.begin(), kept.end(), nth(steps, list[i].step));
        if (step == kept.end() || *step != nth(steps, list[i].step)) continue;
        if (to != i) list[to] = std::move(list[i]);
        list[to++].step = static_cast<int>(step - kept.begin());
      }
      list.resize(to);
    };
    renumber(rank.ranges);
    renumber(rank.updates);
    if (rank.step_lengths.empty()) continue;
    std::vector<std::int64_t> lengths;
    for (std::size_t at = 0; at < steps.size(); ++at) {
      if (std::binary_search(kept.begin(), kept.end(), steps[at])) {
        lengths.push_back(rank.step_lengths[at]);
      }
    }
    rank.step_lengths = std::move(lengths);
  }
  return static_cast<int>(microbatches);
}

}  // namespace stageline
