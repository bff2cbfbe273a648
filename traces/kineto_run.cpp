// The ranks of one pipeline put together: steps that all have, stages, clocks, the program that
// ran, and a timeline.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/errors.hpp"
#include "traces/kineto_rank.hpp"

namespace stageline {
namespace {

Time from_nanoseconds(std::int64_t count) { return std::chrono::nanoseconds(count); }

std::string files_of(const std::vector<KinetoRank>& ranks) {
  std::string text;
  for (const KinetoRank& rank : ranks) text += (text.empty() ? "" : ", ") + rank.file;
  return text;
}

bool is_compute(Op op) { return lane_of(op.kind) == LaneKind::compute; }

// By the rank that the profile names; where one names none, in the order of the files.
void put_in_order(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  const auto unnamed =
      std::find_if(ranks.begin(), ranks.end(), [](const KinetoRank& r) { return !r.rank; });
  if (unnamed != ranks.end()) {
    if (ranks.size() > 1) {
      run.notes.push_back(fmt::format(
          "{} does not say its rank (distributedInfo.rank): ranks are numbered in the order of the "
          "files",
          unnamed->file));
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = static_cast<int>(i);
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const KinetoRank& a, const KinetoRank& b) { return *a.rank < *b.rank; });
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    run.ranks.push_back(*ranks[i].rank);
    if (i == 0 || *ranks[i].rank != *ranks[i - 1].rank) continue;
    throw TraceError(ranks[i].file, "/distributedInfo/rank",
                     fmt::format("rank {} is that of {} too; give one profile a rank",
                                 *ranks[i].rank, ranks[i - 1].file));
  }
}

// One-stage schedules do not name the stage: it is the place of the rank.
void number_stages(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].named_by_stage != ranks[0].named_by_stage) {
      const KinetoRank& plain = ranks[ranks[0].named_by_stage ? i : 0];
      throw TraceError(plain.file, "",
                       "it has no range that is named like \"PP:2F0\", but the profiles of other "
                       "ranks have");
    }
    if (ranks[i].named_by_stage) continue;
    for (KinetoRange& range : ranks[i].ranges) {
      for (Op& op : range.ops) op.stage = static_cast<std::uint16_t>(i);
    }
  }
  if (!ranks[0].named_by_stage) {
    run.notes.emplace_back(
        "ranges are named \"Forward\" and \"Backward\", without a stage: each rank is taken for "
        "the "
        "stage of its place among the ranks");
  }
}

// By stage, the device that computes it.
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
                        op.stage, ranks[static_cast<std::size_t>(at->second)].file));
      }
    }
  }
  std::vector<int> devices;
  for (int stage = 0; stage < stages; ++stage) {
    const auto at = device_of.find(stage);
    if (at == device_of.end()) {
      throw TraceError(
          files_of(ranks), "",
          fmt::format("stage {} of {} runs in none of the profiles; give that of every "
                      "rank of the pipeline",
                      stage, stages));
    }
    devices.push_back(at->second);
  }
  return devices;
}

// Which op a step lacks, in words; nothing when it is complete.
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

// Keeps the steps that are complete on every rank, numbered from 0; returns the micro-batches of
// each.
int keep_complete_steps(std::vector<KinetoRank>& ranks, int stages, KinetoRun& run) {
  Done done;
  std::uint32_t microbatches = 0;
  std::map<std::int64_t, std::size_t> seen;  // by step, on how many ranks
  for (const KinetoRank& rank : ranks) {
    for (const std::int64_t step : rank.steps) ++seen[step];
    for (const KinetoRange& range : rank.ranges) {
      for (const Op op : range.ops) {
        if (!is_compute(op)) continue;
        microbatches = std::max(microbatches, op.microbatch + 1);
        done.insert(
            {rank.steps[static_cast<std::size_t>(range.step)], op.stage, op.kind, op.microbatch});
      }
    }
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
    throw TraceError(
        files_of(ranks), "",
        fmt::format("no step is complete on every rank: {}; profile at least one whole "
                    "step of training",
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
        const auto step = std::lower_bound(kept.begin(), kept.end(),
                                           steps[static_cast<std::size_t>(list[i].step)]);
        if (step == kept.end() || *step != steps[static_cast<std::size_t>(list[i].step)]) continue;
        if (to != i) list[to] = std::move(list[i]);
        list[to++].step = static_cast<int>(step - kept.begin());
      }
      list.resize(to);
    };
    renumber(rank.ranges);
    renumber(rank.updates);
  }
  return static_cast<int>(microbatches);
}

void align(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  run.shifts = align_clocks(ranks);
  if (run.shifts.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t by =
        std::chrono::duration_cast<std::chrono::nanoseconds>(run.shifts[i].shift).count();
    if (by == 0) continue;
    list += fmt::format("{}rank {} by {}{} (± {})", list.empty() ? "" : ", ", *ranks[i].rank,
                        by > 0 ? "+" : "-", print(from_nanoseconds(by > 0 ? by : -by)),
                        print(run.shifts[i].either_way));
    for (KinetoRange& range : ranks[i].ranges) {
      range.start += by;
      range.end += by;
      if (range.arrival) *range.arrival += by;
    }
    for (KinetoUpdate& update : ranks[i].updates) {
      update.start += by;
      update.end += by;
    }
  }
  run.notes.push_back(fmt::format(
      "the clocks disagree, since messages arrive before they are sent; they are shifted to the "
      "middle of what the messages allow: {}",
      list));
}

// What waits inside of its range begins when its message is there.
void cut_waiting(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  run.waited.resize(ranks.size());
  std::map<const KinetoRange*, std::pair<int, std::int64_t>> begins;
  for (const KinetoMessage& message : messages_of(ranks)) {
    if (!(message.read->ops[0] == message.reader)) continue;  // the second of a pair
    const std::int64_t there = message.arrival_known ? message.arrived : message.sent;
    auto& [rank, start] = begins.try_emplace(message.read, message.to, there).first->second;
    start = std::max(start, there);
  }
  Time most{};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (KinetoRange& range : ranks[i].ranges) {
      const auto at = begins.find(&range);
      if (at == begins.end() || at->second.second <= range.start) continue;
      const std::int64_t start = std::min(at->second.second, range.end);
      run.waited[i] += from_nanoseconds(start - range.start);
      range.start = start;
    }
    most = std::max(most, run.waited[i]);
  }
  if (most == Time{}) return;
  std::string list;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    list += fmt::format("{}{} on rank {}", list.empty() ? "" : ", ", print(run.waited[i]),
                        *ranks[i].rank);
  }
  run.notes.push_back(fmt::format(
      "ranges that wait for a message inside begin when it is there: cut off {}", list));
}

void note_ranges(const std::vector<KinetoRank>& ranks, KinetoRun& run) {
  std::int64_t left_out = 0;
  std::int64_t outside = 0;
  std::int64_t without_gpu = 0;
  Time time{};
  for (const KinetoRank& rank : ranks) {
    left_out += rank.left_out;
    time += rank.left_out_time;
    outside += rank.outside;
    without_gpu += rank.without_gpu;
    if (rank.source == run.source) continue;
    throw TraceError(rank.file, "",
                     fmt::format("{} has ranges of the pipeline on its GPU and {} has not; profile "
                                 "all ranks alike",
                                 (rank.source == RangeSource::gpu ? rank : ranks[0]).file,
                                 (rank.source == RangeSource::gpu ? ranks[0] : rank).file));
  }
  switch (run.source) {
    case RangeSource::gpu:
      run.notes.emplace_back("times are those of the ranges on the GPU");
      break;
    case RangeSource::cpu:
      run.notes.emplace_back("times are those of the ranges on the CPU, where the work was done");
      break;
    case RangeSource::launches:
      run.notes.emplace_back(
          "the profiles have kernels but no gpu_user_annotation of the ranges: times are those of "
          "LAUNCHING the work from the CPU, not of the work; clocks are taken as they are");
      break;
  }
  if (without_gpu > 0) {
    run.notes.push_back(fmt::format(
        "{} ranges put nothing on the GPU and have their times on the CPU", without_gpu));
  }
  if (left_out > 0) {
    run.notes.push_back(
        fmt::format("{} ranges of UNSHARD, RESHARD and REDUCE_GRAD are left out ({} in all ranks)",
                    left_out, print(time)));
  }
  if (outside > 0) {
    run.notes.push_back(
        fmt::format("{} ranges lie outside of every ProfilerStep and are left out", outside));
  }
}

// An optimizer's step is of all stages of its rank in equal shares, or of one each.
struct UpdateSpan {
  int step;
  Op op;
  std::int64_t start;
  std::int64_t end;
};
std::vector<UpdateSpan> updates_of(const KinetoRank& rank, const std::vector<int>& stages,
                                   std::size_t steps, KinetoRun& run) {
  std::vector<std::vector<KinetoUpdate>> by_step(steps);
  for (const KinetoUpdate& update : rank.updates) {
    by_step[static_cast<std::size_t>(update.step)].push_back(update);
  }
  std::vector<UpdateSpan> spans;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<KinetoUpdate>& found = by_step[step];
    if (found.size() != 1 && found.size() != stages.size()) {
      if (!rank.updates.empty()) {
        run.notes.push_back(
            fmt::format("rank {} has {} Optimizer.step ranges in a step and {} stages: its updates "
                        "are left out",
                        *rank.rank, found.size(), stages.size()));
      }
      return {};
    }
    for (std::size_t i = 0; i < stages.size(); ++i) {
      Op op;
      op.kind = OpKind::update;
      op.stage = static_cast<std::uint16_t>(stages[i]);
      op.microbatch = static_cast<std::uint32_t>(step);
      const KinetoUpdate& from = found[found.size() == 1 ? 0 : i];
      const auto share = [&](std::size_t part) {
        if (found.size() > 1 || stages.size() == 1) return part == i ? from.start : from.end;
        return from.start + (from.end - from.start) * static_cast<std::int64_t>(part) /
                                static_cast<std::int64_t>(stages.size());
      };
      spans.push_back({static_cast<int>(step), op, share(i), share(i + 1)});
    }
  }
  return spans;
}

std::string date_of(std::int64_t nanoseconds) {
  const std::chrono::sys_days day = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(nanoseconds)));
  const std::chrono::year_month_day date(day);
  constexpr int first_plausible =
      2000;  // before it, a clock that counts from the start of something
  if (static_cast<int>(date.year()) < first_plausible) return "";
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

void fill(const std::vector<KinetoRank>& ranks, const std::vector<int>& device_of, int microbatches,
          KinetoRun& run) {
  const std::size_t steps = ranks[0].steps.size();
  Program& program = run.program;
  program.schedule = "measured";
  program.microbatches = microbatches;
  program.steps = static_cast<int>(steps);
  for (const int device : device_of) program.placement.stage.push_back({{device}, {}, {}, {}});
  program.edges = chain_edges(program.stages());
  program.independent_w.assign(device_of.size(), false);
  program.ops.resize(ranks.size());
  run.timeline.lanes.resize(ranks.size() * lane_kinds);
  struct Placed {
    std::size_t lane;
    Op op;
    std::int64_t start;
    std::int64_t end;
  };
  std::vector<Placed> placed;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (std::size_t d = 0; d < ranks.size(); ++d) {
    program.devices.push_back(fmt::format("rank{}", *ranks[d].rank));
    const auto put = [&](Op op, std::int64_t start, std::int64_t end) {
      program.ops[d].push_back(op);
      placed.push_back(
          {d * lane_kinds + static_cast<std::size_t>(lane_of(op.kind)), op, start, end});
      first = std::min(first, start);
      last = std::max(last, end);
    };
    std::vector<int> stages;
    for (std::size_t s = 0; s < device_of.size(); ++s) {
      if (device_of[s] == static_cast<int>(d)) stages.push_back(static_cast<int>(s));
    }
    const std::vector<UpdateSpan> updates = updates_of(ranks[d], stages, steps, run);
    std::size_t at = 0;
    std::size_t next = 0;
    for (std::size_t step = 0; step < steps; ++step) {
      for (; at < ranks[d].ranges.size() && ranks[d].ranges[at].step == static_cast<int>(step);
           ++at) {
        const KinetoRange& range = ranks[d].ranges[at];
        for (Op op : range.ops) {
          op.microbatch +=
              static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(microbatches);
          put(op, range.start, std::max(range.end, range.arrival.value_or(range.end)));
        }
      }
      for (; next < updates.size() && updates[next].step == static_cast<int>(step); ++next) {
        put(updates[next].op, updates[next].start, updates[next].end);
      }
    }
  }
  if (last - first > std::chrono::duration_cast<std::chrono::nanoseconds>(longest_input).count()) {
    throw TraceError(
        files_of(ranks), "",
        fmt::format("the ranges of the profiles lie {} s apart; they are not of one run",
                    (last - first) / 1'000'000'000));
  }
  for (const Placed& one : placed) {
    run.timeline.lanes[one.lane].push_back(
        {one.op, from_nanoseconds(one.start - first), from_nanoseconds(one.end - first)});
  }
  for (auto& lane : run.timeline.lanes) {
    std::stable_sort(lane.begin(), lane.end(),
                     [](const Span& a, const Span& b) { return a.start < b.start; });
  }
  run.timeline.devices = program.devices;
  run.date = date_of(first);
}

}  // namespace

std::vector<KinetoMessage> messages_of(const std::vector<KinetoRank>& ranks) {
  using Key = std::tuple<int, int, std::uint32_t, OpKind>;  // step, stage, micro-batch
  std::map<Key, std::pair<int, const KinetoRange*>> where;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const KinetoRange& range : ranks[i].ranges) {
      for (const Op op : range.ops) {
        where[{range.step, op.stage, op.microbatch, op.kind}] = {static_cast<int>(i), &range};
      }
    }
  }
  const auto find = [&](int step, int stage, std::uint32_t m, OpKind kind) {
    const auto at = where.find({step, stage, m, kind});
    return at == where.end() ? std::pair<int, const KinetoRange*>{-1, nullptr} : at->second;
  };
  std::vector<KinetoMessage> messages;
  for (const auto& [key, reads] : where) {
    const auto [step, stage, m, kind] = key;
    const bool forward = kind == OpKind::forward;
    if (!forward && kind != OpKind::backward && kind != OpKind::input_grad) continue;
    const int from = forward ? stage - 1 : stage + 1;
    auto made = find(step, from, m, forward ? OpKind::forward : OpKind::backward);
    if (made.second == nullptr && !forward) made = find(step, from, m, OpKind::input_grad);
    if (made.second == nullptr || made.first == reads.first) continue;
    const auto send =
        find(step, from, m, forward ? OpKind::send_forward : OpKind::send_backward).second;
    const auto receive =
        find(step, stage, m, forward ? OpKind::receive_forward : OpKind::receive_backward).second;
    KinetoMessage message;
    message.from = made.first;
    message.to = reads.first;
    message.reader.kind = kind;
    message.reader.stage = static_cast<std::uint16_t>(stage);
    message.reader.microbatch = m;
    message.reader.overlapped = reads.second->ops.size() == 2 &&
                                        reads.second->ops[0].kind == kind &&
                                        reads.second->ops[0].stage == stage
                                    ? 1
                                    : 0;
    message.made = made.second;
    message.read = reads.second;
    message.sent = made.second->end;
    if (send != nullptr) message.sent = std::max(message.sent, send->start);
    message.arrived = reads.second->end;
    if (receive != nullptr && receive->arrival) {
      message.arrival_known = true;
      message.arrived = std::min(message.arrived, *receive->arrival);
    }
    messages.push_back(message);
  }
  return messages;
}

KinetoRun read_kineto(const std::vector<NamedText>& profiles) {
  KinetoRun run;
  std::vector<KinetoRank> ranks;
  for (const NamedText& profile : profiles) ranks.push_back(read_kineto_rank(profile));
  if (ranks.empty()) throw UsageError("a run needs at least one profile");
  put_in_order(ranks, run);
  number_stages(ranks, run);
  run.source = ranks[0].source;
  run.accelerator = ranks[0].accelerator;
  note_ranges(ranks, run);
  const std::vector<int> device_of = place_stages(ranks);
  const int microbatches = keep_complete_steps(ranks, static_cast<int>(device_of.size()), run);
  if (run.source != RangeSource::launches) align(ranks, run);
  if (run.source == RangeSource::cpu) cut_waiting(ranks, run);
  fill(ranks, device_of, microbatches, run);
  try {
    validate(run.program);
  } catch (const ProgramError& error) {
    throw TraceError(files_of(ranks), "",
                     fmt::format("the ranges do not make a program: {}", error.what()));
  }
  return run;
}

}  // namespace stageline
