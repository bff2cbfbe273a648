// Cuts one step out of each of two recordings and pairs their ops.
#include "tools/compare/overlay.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/analysis/kind_times.hpp"
#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// How ops are numbered through the steps.
struct Numbering {
  std::uint32_t microbatches = 0;  // per step; 0: all are one step
  std::uint32_t updates = 0;       // per step and stage

  std::uint32_t per_step(Op op) const {
    return counts_microbatches(op.kind) ? microbatches : updates;
  }
  int step(Op op) const {
    const std::uint32_t size = per_step(op);
    return size == 0 ? 0 : static_cast<int>(op.microbatch / size);
  }
};

Numbering numbering_of(const Recording& recording) {
  Numbering numbering;
  if (recording.steps < 2) return numbering;
  numbering.microbatches = static_cast<std::uint32_t>(recording.microbatches);
  std::uint32_t updates = 0;
  for (const auto& lane : recording.timeline.lanes) {
    for (const Span& span : lane) {
      if (span.op.kind == OpKind::update) updates = std::max(updates, span.op.microbatch + 1);
    }
  }
  const auto steps = static_cast<std::uint32_t>(recording.steps);
  numbering.updates = std::max(1U, (updates + steps - 1) / steps);
  return numbering;
}

// The step of median length; the first is counted only where it is all there is, since it has no
// step before it.
int median_step(const StepBounds& bounds) {
  std::vector<std::pair<Time, int>> lengths;
  for (std::size_t k = 1; k < bounds.ends.size(); ++k) {
    lengths.emplace_back(bounds.ends[k] - bounds.ends[k - 1], static_cast<int>(k));
  }
  if (lengths.empty()) return 0;
  std::sort(lengths.begin(), lengths.end());
  return lengths[(lengths.size() - 1) / 2].second;
}

// From the end of the step before.
Time step_length(const StepBounds& bounds, int step) {
  const auto at = as_size(step);
  return bounds.ends[at] - (at == 0 ? bounds.start : bounds.ends[at - 1]);
}

StepCut cut(const Recording& recording, std::optional<int> wanted) {
  const StepBounds bounds = step_bounds(recording);
  const Numbering numbering = numbering_of(recording);
  StepCut result;
  result.name = recording.name;
  result.steps = static_cast<int>(bounds.ends.size());
  result.step = wanted ? std::min(*wanted, result.steps - 1) : median_step(bounds);
  if (wanted && *wanted >= result.steps && result.steps > 1) {
    throw UsageError(fmt::format("--step {}: {} has the steps 0 to {}", *wanted, recording.name,
                                 result.steps - 1));
  }
  result.step_time = step_length(bounds, result.step);
  result.mean = result.step_time;
  if (result.steps > 1) {
    result.mean = (bounds.ends.back() - bounds.ends.front()) / (result.steps - 1);
  } else if (recording.step_time) {
    result.mean = result.step_time = *recording.step_time;
  }
  result.timeline.devices = recording.timeline.devices;
  Time start = Time::max();
  Time end{};
  for (const auto& lane : recording.timeline.lanes) {
    result.timeline.lanes.emplace_back();
    for (Span span : lane) {
      if (numbering.step(span.op) != result.step) continue;
      span.op.microbatch -= static_cast<std::uint32_t>(result.step) * numbering.per_step(span.op);
      start = std::min(start, span.start);
      end = std::max(end, span.end);
      result.timeline.lanes.back().push_back(span);
    }
  }
  for (auto& lane : result.timeline.lanes) {
    for (Span& span : lane) {
      span.start -= start;
      span.end -= start;
    }
  }
  result.length = end - start;
  result.busy = busy_of(result.timeline);
  return result;
}

// A measured side and a simulated one are named as such; else the sides are numbered.
void name_sides(Overlay& overlay, const Recording& first, const Recording& second) {
  const bool differ = first.measured != second.measured;
  overlay.first.word = !differ ? "first" : first.measured ? "measured" : "model";
  overlay.second.word = !differ ? "second" : second.measured ? "measured" : "model";
}

struct PlacedSpan {
  Span span;
  std::size_t device;
};
std::map<Op, PlacedSpan> ops_of(const Timeline& timeline) {
  std::map<Op, PlacedSpan> ops;
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    for (const Span& span : timeline.lanes[d * lane_kinds])
      ops.emplace(plain(span.op), PlacedSpan{span, d});
  }
  return ops;
}

void pair_ops(Overlay& overlay) {
  const std::map<Op, PlacedSpan> first = ops_of(overlay.first.timeline);
  const std::map<Op, PlacedSpan> second = ops_of(overlay.second.timeline);
  std::size_t moved = 0;
  for (const auto& [op, found] : first) {
    const auto other = second.find(op);
    if (other == second.end()) {
      overlay.only_first.push_back(op);
      continue;
    }
    if (found.device != other->second.device) ++moved;
    overlay.ops.push_back({op, overlay.second.timeline.devices[other->second.device], found.span,
                           other->second.span});
  }
  for (const auto& [op, found] : second) {
    if (first.count(op) == 0) overlay.only_second.push_back(op);
  }
  if (moved > 0) {
    overlay.notes.push_back(fmt::format("{} ops run on another device in each", moved));
  }
  const auto size = [](const OpPair& pair) {
    return pair.difference() < Time{} ? -pair.difference() : pair.difference();
  };
  std::stable_sort(overlay.ops.begin(), overlay.ops.end(),
                   [&](const OpPair& a, const OpPair& b) { return size(a) > size(b); });
}

void add_medians(Overlay& overlay, const Recording& first, const Recording& second) {
  std::map<std::tuple<int, OpKind>, KindMedian> medians;
  const auto at = [&](const KindTimes& times) -> KindMedian& {
    KindMedian& median = medians[{times.stage, times.kind}];
    median.stage = times.stage;
    median.kind = times.kind;
    return median;
  };
  for (const KindTimes& times : kind_times(first.timeline, first.estimated)) {
    KindMedian& found = at(times);
    found.first_count = times.times.size();
    found.first = median(times.times);
    found.first_spread = half_interquartile(times.times);
  }
  for (const KindTimes& times : kind_times(second.timeline, second.estimated)) {
    KindMedian& found = at(times);
    found.second_count = times.times.size();
    found.second = median(times.times);
    found.second_spread = half_interquartile(times.times);
  }
  for (const auto& [key, median] : medians) overlay.medians.push_back(median);
}

// Whether the time of a step among others is known. A measured run of one step has only its
// length.
bool has_pace(const StepCut& side, const Recording& recording) {
  return side.steps > 1 || (recording.step_time && !recording.measured);
}

// Half the interquartile range of the steps behind the first, and at least a hundredth of the step:
// smaller differences are noise.
Time noise_of(const Recording& recording, Time step) {
  const StepBounds bounds = step_bounds(recording);
  std::vector<Time> lengths;
  for (int k = 1; k < static_cast<int>(bounds.ends.size()); ++k) {
    lengths.push_back(step_length(bounds, k));
  }
  return std::max(half_interquartile(std::move(lengths)), step / 100);
}

// One statistic for both sides, and a note where another would differ. `paces`: both
// sides have one.
void settle_step_time(StepCut& side, const Recording& recording, bool paces,
                      std::vector<std::string>& notes) {
  if (!paces && side.step_time != side.length) {
    notes.push_back(fmt::format(
        "the {} side's step takes {} among others; it is compared from its first op to the end of "
        "its last, {}, since the other side is one step alone",
        side.word, print(side.step_time), print(side.length)));
    side.step_time = side.length;
    return;
  }
  if (side.steps < 2) return;
  const Time noise = noise_of(recording, side.step_time);
  const auto apart = [&](Time other) {
    return other > side.step_time + noise || other + noise < side.step_time;
  };
  if (apart(side.mean)) {
    notes.push_back(
        fmt::format("the {} steps are unlike: their mean is {}, and step {}, which is compared, "
                    "takes {}",
                    side.word, print(side.mean), side.step, print(side.step_time)));
  }
  if (recording.step_time && !recording.measured && apart(*recording.step_time)) {
    notes.push_back(
        fmt::format("the {} side's steady step takes {}, and step {}, which is compared, {}",
                    side.word, print(*recording.step_time), side.step, print(side.step_time)));
  }
}

}  // namespace

StepBounds step_bounds(const Recording& recording) {
  const Numbering numbering = numbering_of(recording);
  StepBounds bounds;
  std::vector<Time> starts;
  bool any = false;
  for (const auto& lane : recording.timeline.lanes) {
    for (const Span& span : lane) {
      const auto step = as_size(numbering.step(span.op));
      if (step >= as_size(std::max(recording.steps, 1))) {
        throw UsageError(fmt::format(
            "{}: {} is of step {}, but there are {} steps of {} "
            "micro-batches",
            recording.name, print(span.op), step, recording.steps, recording.microbatches));
      }
      if (step >= bounds.ends.size()) {
        bounds.ends.resize(step + 1);
        starts.resize(step + 1, Time::max());
      }
      bounds.ends[step] = std::max(bounds.ends[step], span.end);
      starts[step] = std::min(starts[step], span.start);
      any = true;
    }
  }
  if (!any) throw UsageError(fmt::format("{} has no spans", recording.name));
  for (std::size_t k = 1; k < bounds.ends.size(); ++k) {
    const Time began = starts[k - 1] == Time::max() ? Time{} : starts[k - 1];
    if (bounds.ends[k] < began) {
      throw UsageError(
          fmt::format("{}: step {} ends at {}, before the one before it begins at {}, but steps "
                      "follow each other; times or numbers in it are damaged",
                      recording.name, k, print(bounds.ends[k]), print(began)));
    }
    bounds.ends[k] = std::max(bounds.ends[k], bounds.ends[k - 1]);
  }
  bounds.start = *std::min_element(starts.begin(), starts.end());
  return bounds;
}

Time steady_step(const Recording& recording) {
  if (recording.step_time && !recording.measured) return *recording.step_time;
  const StepBounds bounds = step_bounds(recording);
  if (bounds.ends.size() == 1 && recording.step_time) return *recording.step_time;
  return step_length(bounds, median_step(bounds));
}

Overlay overlay_of(const Recording& first, const Recording& second, std::optional<int> step) {
  Overlay overlay;
  overlay.first = cut(first, step);
  overlay.second = cut(second, step);
  name_sides(overlay, first, second);
  pair_ops(overlay);
  if (overlay.ops.empty()) {
    throw UsageError(fmt::format("{} and {} have no op in common; are they of the same pipeline?",
                                 first.name, second.name));
  }
  add_medians(overlay, first, second);
  const std::size_t devices = overlay.first.timeline.devices.size();
  if (devices != overlay.second.timeline.devices.size()) {
    overlay.notes.push_back(fmt::format("one side has {} devices and the other {}", devices,
                                        overlay.second.timeline.devices.size()));
  }
  for (const auto& [side, recording] :
       {std::pair(&overlay.first, &first), std::pair(&overlay.second, &second)}) {
    if (side->steps > 1) {
      overlay.notes.push_back(fmt::format("of the {} steps of the {} side, step {} is compared{}",
                                          side->steps, side->word, side->step,
                                          step ? "" : ", that of median length"));
    }
  }
  const bool paces = has_pace(overlay.first, first) && has_pace(overlay.second, second);
  settle_step_time(overlay.first, first, paces, overlay.notes);
  settle_step_time(overlay.second, second, paces, overlay.notes);
  for (const auto& [side, recording] :
       {std::pair(&overlay.first, &first), std::pair(&overlay.second, &second)}) {
    for (const std::string& note : recording->notes) {
      overlay.notes.push_back(fmt::format("{}: {}", side->word, note));
    }
  }
  return overlay;
}

}  // namespace stageline
