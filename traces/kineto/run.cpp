// Merges the ranks of one pipeline: the steps that all have, stages, clocks, the program that ran,
// and a timeline.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

void note_ranges(const std::vector<KinetoRank>& ranks, KinetoRun& run) {
  std::int64_t left_out = 0;
  std::int64_t outside = 0;
  std::int64_t without_gpu = 0;
  Time time{};
  Time reductions{};
  Time recomputed{};
  for (const KinetoRank& rank : ranks) {
    left_out += rank.left_out;
    time += rank.left_out_time;
    outside += rank.outside;
    reductions += kineto_time(rank.reductions);
    recomputed += kineto_time(rank.recomputed);
    without_gpu += rank.without_gpu;
    if (rank.source == run.source) continue;
    throw TraceError(rank.file, "",
                     fmt::format("{} has ranges of the pipeline on its GPU and {} has not; "
                                 "profile all ranks alike",
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
          "the profiles show an accelerator, but not when each range was on it (kernels with "
          "External id, or gpu_user_annotation): times are those of LAUNCHING the work from the "
          "CPU, not of the work; clocks are used as recorded");
      break;
  }
  if (without_gpu > 0) {
    run.notes.push_back(
        fmt::format("{} ranges launched nothing on the GPU and are timed on the CPU", without_gpu));
  }
  if (reductions > Time{}) {
    run.notes.push_back(
        fmt::format("collectives that end behind the last kernels of their forwards and backwards, "
                    "as reductions of gradients do, are left out there ({} in all ranks)",
                    print(reductions)));
  }
  if (recomputed > Time{}) {
    run.notes.push_back(fmt::format(
        "forwards ran again inside of backwards (checkpointing; {} of operators in all ranks) and are "
        "a part of them: ask for no recomputation beside these costs",
        print(recomputed)));
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

void note_memory(const std::vector<KinetoRank>& ranks, KinetoRun& run) {
  const auto held = [](const KinetoRank& rank) {
    const ProfiledMemory& memory = rank.traffic.memory();
    return std::max(memory.allocated, memory.reserved);
  };
  const auto most =
      std::max_element(ranks.begin(), ranks.end(),
                       [&](const KinetoRank& a, const KinetoRank& b) { return held(a) < held(b); });
  if (most == ranks.end() || held(*most) == 0) return;
  run.notes.push_back(
      fmt::format("{}{}", memory_text(most->traffic.memory()),
                  ranks.size() > 1 ? fmt::format(", on rank {}", *most->rank) : ""));
}

// Forwards and backwards that are found by autograd's operators hold what autograd knows of alone:
// not what an extension runs beside it.
void check_work(const std::vector<KinetoRank>& ranks, KinetoRun& run) {
  const KinetoRank* most = nullptr;
  const auto share = [](const KinetoRank& rank) {
    return static_cast<double>(rank.other_work) / static_cast<double>(rank.work);
  };
  for (const KinetoRank& rank : ranks) {
    if (rank.work > 0 && (most == nullptr || share(rank) > share(*most))) most = &rank;
  }
  if (most == nullptr) return;
  const std::string what = most->source == RangeSource::gpu ? "kernels" : "operators";
  if (most->other_work > most->work) {
    throw TraceError(
        most->file, "",
        fmt::format("the forwards and backwards of autograd's operators have {} of {}, and {} of "
                    "{} are in neither, so these are not the passes of the model; name the ranges "
                    "of its forwards and backwards (record_function, import kineto --names FILE)",
                    print(kineto_time(most->work)), what, print(kineto_time(most->other_work)),
                    what));
  }
  constexpr double mentioned = 0.05;
  if (share(*most) < mentioned) return;
  run.notes.push_back(fmt::format(
      "{} of {} on rank {} are in no forward or backward of autograd's operators ({} are), and are "
      "left out",
      print(kineto_time(most->other_work)), what, *most->rank, print(kineto_time(most->work))));
}

// How much of a step the ops of the busiest rank take, where operators alone tell them.
void note_share(const std::vector<KinetoRank>& ranks, KinetoRun& run) {
  if (ranks[0].style != KinetoStyle::operators) return;
  std::int64_t most = 0;
  std::int64_t steps = 0;
  for (const KinetoRank& rank : ranks) {
    std::int64_t busy = 0;
    std::int64_t length = 0;
    for (const KinetoRange& range : rank.ranges) {
      if (lane_of(range.ops[0].kind) == LaneKind::compute) busy += range.end - range.start;
    }
    for (const KinetoUpdate& update : rank.updates) busy += update.end - update.start;
    for (const std::int64_t one : rank.step_lengths) length += one;
    if (length == 0 || (steps > 0 && busy <= most)) continue;
    most = busy;
    steps = length;
  }
  if (steps == 0) return;
  const auto count = static_cast<std::int64_t>(ranks[0].step_lengths.size());
  run.notes.push_back(
      fmt::format("forwards, backwards and updates take {} of a ProfilerStep of {}{}; the rest is "
                  "waiting, and work that autograd's operators do not tell",
                  print(kineto_time(most / count)), print(kineto_time(steps / count)),
                  ranks.size() > 1 ? " on the busiest rank" : ""));
}

void fill(const std::vector<KinetoRank>& ranks, const std::vector<int>& device_of, int microbatches,
          KinetoRun& run) {
  const std::size_t steps = ranks[0].steps.size();
  Program& program = run.program;
  program.schedule = "profiled";
  program.microbatches = microbatches;
  program.steps = static_cast<int>(steps);
  for (const int device : device_of) program.placement.stage.push_back({{device}, {}, {}, {}, {}});
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
      placed.push_back({d * lane_kinds + as_size(lane_of(op.kind)), op, start, end});
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
        const bool divided = range.first_end && range.second_start;
        for (std::size_t i = 0; i < range.ops.size(); ++i) {
          Op op = range.ops[i];
          op.microbatch +=
              static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(microbatches);
          put(op, divided && i == 1 ? *range.second_start : range.start,
              divided && i == 0 ? *range.first_end
                                : std::max(range.end, range.arrival.value_or(range.end)));
          if (divided) placed.back().op.overlapped = 0;
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
        {one.op, kineto_time(one.start - first), kineto_time(one.end - first)});
  }
  for (auto& lane : run.timeline.lanes) {
    std::stable_sort(lane.begin(), lane.end(),
                     [](const Span& a, const Span& b) { return a.start < b.start; });
  }
  run.timeline.devices = program.devices;
  run.origin = first;
  run.date = kineto_date(first);
}

}  // namespace

std::string kineto_date(std::int64_t nanoseconds) {
  const std::chrono::sys_days day = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(nanoseconds)));
  const std::chrono::year_month_day date(day);
  constexpr int first_plausible = 2000;  // earlier years mean a clock that does not count from 1970
  if (static_cast<int>(date.year()) < first_plausible) return "";
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

namespace {

// The run of these ranks, in order, as one pipeline.
void merge(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  number_stages(ranks, run);
  run.source = ranks[0].source;
  run.accelerator = ranks[0].accelerator;
  note_ranges(ranks, run);
  note_memory(ranks, run);
  check_work(ranks, run);
  const bool found = ranks[0].style == KinetoStyle::named;
  if (found) drop_outer_messages(ranks);
  const std::vector<int> device_of = place_stages(ranks);
  const int microbatches = keep_complete_steps(ranks, static_cast<int>(device_of.size()), run);
  if (found) settle_messages(ranks, static_cast<int>(device_of.size()), microbatches, run);
  if (run.source == RangeSource::launches) {
    check_one_clock(ranks);
  } else {
    align(ranks, run);
  }
  check_order(ranks);
  if (run.source == RangeSource::cpu) {
    cut_waiting(ranks, run);
    divide_pairs(ranks, microbatches, run);
  }
  note_share(ranks, run);
  fill(ranks, device_of, microbatches, run);
  run.transit = transits_of(ranks, microbatches);
  try {
    validate(run.program);
  } catch (const ProgramError& error) {
    throw TraceError(files_of(ranks), "",
                     fmt::format("the ranges do not make a program: {}", error.what()));
  }
}

// Each rank runs the whole model, or its share of every layer: a pipeline of one stage.
KinetoRun read_replicas(std::vector<KinetoRank>& ranks) {
  std::vector<KinetoRun> runs(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::vector<KinetoRank> alone{ranks[i]};
    alone[0].ranks.clear();  // the others are no part of its pipeline
    runs[i].ranks.push_back(*ranks[i].rank);
    merge(alone, runs[i]);
    if (runs[i].program.microbatches == runs[0].program.microbatches) continue;
    throw TraceError(
        ranks[i].file, "",
        fmt::format("it has {} micro-batches a step, and {} has {}, but as they send each other no "
                    "message they are replicas, which have as many; give the profiles of one run",
                    runs[i].program.microbatches, ranks[0].file, runs[0].program.microbatches));
  }
  KinetoRun run = std::move(runs[0]);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].source != run.source) {
      throw TraceError(ranks[i].file, "",
                       fmt::format("its times are not measured as those of {}; profile all ranks "
                                   "alike",
                                   ranks[0].file));
    }
    run.replicas.push_back(std::move(runs[i].timeline));
  }
  run.notes.push_back(fmt::format(
      "the {} ranks send each other no message, so they are replicas (or shards of every layer), "
      "not stages: costs are medians over all of them, the program is that of rank {}, and their "
      "collectives are left out",
      ranks.size(), run.ranks[0]));
  return run;
}

}  // namespace

KinetoRun read_kineto(const std::vector<NamedText>& profiles, const RangeNames* names) {
  KinetoRun run;
  std::vector<KinetoRank> ranks;
  for (const NamedText& profile : profiles) ranks.push_back(read_kineto_rank(profile, names));
  if (ranks.empty()) throw UsageError("a run needs at least one profile");
  put_in_order(ranks, run);
  if (are_replicas(ranks)) return read_replicas(ranks);
  merge(ranks, run);
  return run;
}

}  // namespace stageline
