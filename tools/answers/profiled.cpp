// Adds up what ranks do in their ops, between them while they could run one, and while they cannot.
#include "tools/answers/profiled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/compare/overlay.hpp"
#include "traces/kineto/activity.hpp"

namespace stageline::answers {
namespace {

constexpr double little_longer = 0.05;  // of the median step: nobody asks why

// ---- the parts of a rank's time ----

struct PartOfRank {
  std::string_view name;
  std::string_view remedy;  // empty: nothing that can be asked for
};

// Waiting has the causes of measured_idle(), by name; the rest is what profiles show.
constexpr std::array parts_of_rank{
    PartOfRank{"forward", ""},
    PartOfRank{"backward", ""},
    PartOfRank{"optimizer step", "ZeRO 1, which divides it, or a fused optimizer"},
    PartOfRank{"other ops", ""},
    PartOfRank{"fill", "more micro-batches a step, or interleaved_1f1b and zero-bubble schedules"},
    PartOfRank{"drain", "more micro-batches a step, or interleaved_1f1b and zero-bubble schedules"},
    PartOfRank{"dependency", "another schedule: stageline compare"},
    PartOfRank{"imbalance", "another cut: import kineto --out, then --partition simulated"},
    PartOfRank{"link", "stages within a machine, larger micro-batches; check the links below"},
    PartOfRank{"copies", "less offloading"},
    PartOfRank{"unused", "devices without work"},
    PartOfRank{"collectives", "overlapped reductions and gathers, or groups within a machine"},
    PartOfRank{"optimizer", "ZeRO 1, which divides the optimizer"},
    PartOfRank{"other work", "the kernels between the ops: record_function() names them"},
    PartOfRank{"data loading", "more workers of the loader, prefetch_factor, pin_memory"},
    PartOfRank{"memory allocation",
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or fewer bytes: the allocator "
               "asks the driver"},
    PartOfRank{"host synchronizations",
               "no .item(), .cpu() or print of a loss in every step: with_stack=True shows where"},
    PartOfRank{"launch gaps",
               "CUDA graphs, torch.compile, larger micro-batches: the CPU launches too slowly"},
    PartOfRank{"no operator", "Python between the operators: py-spy shows where"},
    PartOfRank{"waits for a late rank", "what makes that rank late: the table of ranks"},
};

using RankParts = std::map<std::string_view, Time>;

std::string_view name_of(Activity activity, bool on_device) {
  switch (activity) {
    case Activity::work:
      return "other work";
    case Activity::collectives:
      return "collectives";
    case Activity::data_loading:
      return "data loading";
    case Activity::allocation:
      return "memory allocation";
    case Activity::synchronization:
      return "host synchronizations";
    case Activity::nothing:
      return on_device ? "launch gaps" : "no operator";
  }
  return "";
}

std::string_view part_of(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return "forward";
    case OpKind::backward:
    case OpKind::input_grad:
    case OpKind::weight_grad:
      return "backward";
    case OpKind::update:
      return "optimizer step";
    default:
      return "other ops";
  }
}

// What a device does in its ops: on a GPU their kernels, and what is between these.
void add_ops(const KinetoRun& run, int device, const RankActivity& activity, RankParts& parts) {
  const bool on_device = run.source == RangeSource::gpu;
  Time free{};
  for (const Span& span : run.timeline.lane(device, LaneKind::compute)) {
    const TimeStretch when{std::max(free, span.start), std::max(free, span.end)};
    free = when.end;
    if (!on_device) {
      parts[part_of(span.op.kind)] += when.end - when.start;
      continue;
    }
    const ActivityTimes times = activity.within(when);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto what = static_cast<Activity>(i);
      parts[what == Activity::work ? part_of(span.op.kind) : name_of(what, on_device)] += times[i];
    }
  }
}

// `other` of the causes: as much of it as the device was late itself, by what it did meanwhile.
void add_other(const MeasuredIdle& idle, std::size_t device, bool on_device,
               const RankActivity& activity, RankParts& parts) {
  const Time own = std::min(idle.late[device], idle.other[device]);
  parts["waits for a late rank"] += idle.other[device] - own;
  ActivityTimes late{};
  for (const TimeStretch& one : idle.late_stretches[device]) {
    const ActivityTimes times = activity.within(one);
    for (std::size_t i = 0; i < times.size(); ++i) late[i] += times[i];
  }
  Time rest = own;
  Time left = idle.late[device];
  for (std::size_t i = 0; i < late.size() && left > Time{}; ++i) {
    const Time part = late[i] == left ? rest : scaled(rest, late[i].count(), left.count()).value();
    parts[name_of(static_cast<Activity>(i), on_device)] += part;
    rest -= part;
    left -= late[i];
  }
}

RankParts parts_of(const KinetoRun& run, const MeasuredIdle& idle, std::size_t device,
                   const RankActivity& activity) {
  RankParts parts;
  add_ops(run, static_cast<int>(device), activity, parts);
  const DeviceMetrics& metrics = idle.metrics.device[device];
  for (int kind = 0; kind < idle_kinds; ++kind) {
    parts[name(static_cast<IdleKind>(kind))] += nth(metrics.idle_by, kind);
  }
  add_other(idle, device, run.source == RangeSource::gpu, activity, parts);
  return parts;
}

// ---- links ----

double rank_of_nine_in_ten(std::size_t count) { return 0.9 * static_cast<double>(count - 1); }

std::vector<MeasuredLink> links_of(const KinetoRun& run,
                                   const std::vector<RankActivity>& activities) {
  std::map<std::pair<int, int>, std::vector<Time>> times;
  const std::vector<StagePlace>& stages = run.program.placement.stage;
  for (const auto& [reader, time] : run.transit) {
    const int before = reader.kind == OpKind::forward ? reader.stage - 1 : reader.stage + 1;
    if (before < 0 || before >= run.program.stages()) continue;
    times[{nth(stages, before).replicas.front(), nth(stages, reader.stage).replicas.front()}]
        .push_back(time);
  }
  std::vector<MeasuredLink> links;
  for (auto& [ends, list] : times) {
    std::sort(list.begin(), list.end());
    MeasuredLink link;
    link.from = nth(run.program.devices, ends.first);
    link.to = nth(run.program.devices, ends.second);
    link.messages = list.size();
    link.median = list[(list.size() - 1) / 2];
    link.most = list[static_cast<std::size_t>(rank_of_nine_in_ten(list.size()))];
    link.bytes = Bytes{nth(activities, ends.first).bytes_sent()};
    links.push_back(std::move(link));
  }
  return links;
}

// ---- steps ----

std::vector<Time> steps_of(const KinetoRun& run) {
  Recording recording;
  recording.name = "the run";
  recording.timeline = run.timeline;
  recording.steps = run.program.steps;
  recording.microbatches = run.program.microbatches;
  const StepBounds bounds = step_bounds(recording);
  std::vector<Time> steps;
  Time before = bounds.start;
  for (const Time end : bounds.ends) {
    steps.push_back(end - before);
    before = end;
  }
  return steps;
}

Time median_of(std::vector<Time> times) {
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) / 2];
}

// By device and part, what its ops take in each step.
using OpsByStep = std::map<std::pair<std::size_t, std::string_view>, std::vector<Time>>;

OpsByStep ops_by_step(const KinetoRun& run) {
  OpsByStep ops;
  const auto steps = as_size(run.program.steps);
  for (std::size_t d = 0; d < run.program.devices.size(); ++d) {
    for (const Span& span : run.timeline.lane(static_cast<int>(d), LaneKind::compute)) {
      if (span.op.kind == OpKind::update) continue;
      const auto step = as_size(static_cast<int>(span.op.microbatch) / run.program.microbatches);
      std::vector<Time>& times = ops[{d, part_of(span.op.kind)}];
      times.resize(steps);
      if (step < steps) times[step] += span.end - span.start;
    }
  }
  return ops;
}

std::string longest_step(const KinetoRun& run, const std::vector<Time>& steps) {
  if (steps.size() < 2) return "";
  const Time median = median_of(steps);
  const auto longest = std::max_element(steps.begin(), steps.end());
  const double longer = to_seconds(*longest) / to_seconds(median) - 1;
  if (!(longer > little_longer)) return "";
  const auto step = static_cast<std::size_t>(longest - steps.begin());
  std::string what = "none of its ops took longer: ranks waited";
  Time most = (*longest - median) / 10;
  for (const auto& [key, times] : ops_by_step(run)) {
    const Time more = times[step] - median_of(times);
    if (more <= most) continue;
    most = more;
    what = fmt::format("{} of {} took {} more than in the median step", key.second,
                       run.program.devices[key.first], print(more));
  }
  return fmt::format("step {} took {:.1f} % longer than the median one: {}", step, 100 * longer,
                     what);
}

// ---- all ranks ----

void add_rank(const KinetoRun& run, const MeasuredIdle& idle, std::size_t device,
              const RankActivity& activity, std::vector<RankParts>& parts, ProfiledRun& found) {
  parts.push_back(parts_of(run, idle, device, activity));
  found.ranks.push_back(
      {run.program.devices[device], {}, idle.metrics.makespan, idle.late[device]});
}

// Each replica is a run of its own.
void add_replicas(const ProfileQuestion& question, std::vector<RankParts>& parts,
                  ProfiledRun& found) {
  for (const NamedText& profile : question.profiles) {
    const KinetoRun run = read_kineto({profile}, question.names);
    const MeasuredIdle idle = idle_of(run);
    add_rank(run, idle, 0, activities_of({profile}, run).front(), parts, found);
  }
}

void put_parts(const std::vector<RankParts>& ranks, ProfiledRun& found) {
  const auto steps = found.run.program.steps * static_cast<int>(ranks.size());
  for (const PartOfRank& part : parts_of_rank) {
    Time sum{};
    for (const RankParts& one : ranks) {
      const auto at = one.find(part.name);
      if (at != one.end()) sum += at->second;
    }
    if (sum == Time{}) continue;
    found.parts.push_back({std::string(part.name), sum / steps, std::string(part.remedy)});
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto at = ranks[i].find(part.name);
      found.ranks[i].parts.push_back(at == ranks[i].end() ? Time{} : at->second);
    }
  }
}

}  // namespace

double MeasuredLink::bytes_per_second() const {
  if (bytes <= Bytes{} || median <= Time{}) return 0;
  return static_cast<double>(bytes.count) / to_seconds(median);
}

MeasuredIdle idle_of(const KinetoRun& run) {
  if (run.source == RangeSource::launches) {
    throw UsageError(
        "the profiles show when work was launched, not when it ran: idle time cannot be explained "
        "without gpu_user_annotation ranges, or kernels with the External id of their operators");
  }
  return measured_idle(run.program, run.timeline, run.transit);
}

ProfiledRun answer(const ProfileQuestion& question) {
  ProfiledRun found;
  found.run = read_kineto(question.profiles, question.names);
  found.idle = idle_of(found.run);
  std::vector<RankParts> parts;
  if (found.run.replicas.empty()) {
    const std::vector<RankActivity> activities = activities_of(question.profiles, found.run);
    for (std::size_t d = 0; d < found.run.program.devices.size(); ++d) {
      add_rank(found.run, found.idle, d, activities[d], parts, found);
    }
    found.links = links_of(found.run, activities);
  } else {
    add_replicas(question, parts, found);
  }
  put_parts(parts, found);
  found.steps = steps_of(found.run);
  found.longest = longest_step(found.run, found.steps);
  found.notes = found.run.notes;
  return found;
}

}  // namespace stageline::answers
