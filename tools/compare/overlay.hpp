// Two runs of one pipeline, op by op: a model and a measurement, or any two timelines.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/timeline.hpp"
#include "tools/inputs/recordings.hpp"

namespace stageline {

/// One step of a recording, from its first op at 0; micro-batches and updates numbered from 0.
struct StepCut {
  std::string name;        // of the recording
  std::string word;        // of the side in tables: "model", "measured", "first", "second"
  int step = 0;            // its index
  int steps = 1;           // of the recording
  Timeline timeline;       // of that step
  Time length{};           // to the end of its last op
  Time step_time{};        // of that step, from the end of the one before; of a single step the
                           // pace of its recording, else its length
  Time mean{};             // the mean of all steps behind the first; of a single step its step_time
  std::vector<Time> busy;  // of the compute lane, by device
};

/// An op that both have.
struct OpPair {
  Op op;
  std::string device;  // of the second side
  Span first;
  Span second;

  Time first_time() const { return first.end - first.start; }
  Time second_time() const { return second.end - second.start; }
  Time difference() const { return second_time() - first_time(); }
};

/// Medians over the micro-batches of all steps.
struct KindMedian {
  int stage = 0;
  OpKind kind = OpKind::forward;
  std::size_t first_count = 0;
  Time first{};
  Time first_spread{};  // half the interquartile range
  std::size_t second_count = 0;
  Time second{};
  Time second_spread{};
};

struct Overlay {
  StepCut first;
  StepCut second;
  std::vector<OpPair> ops;  // of compute lanes, largest difference first
  std::vector<Op> only_first;
  std::vector<Op> only_second;
  std::vector<KindMedian> medians;  // by stage, then kind; of compute lanes
  std::vector<std::string> notes;
};

/// Cuts one step out of each, the one of median length unless `step` (from 0) names another, and
/// pairs its ops. Where one side is a single step of which no pace is known, both step times are
/// lengths. A note appears where the mean of the steps differs from the step compared. Throws
/// UsageError where a recording has no such step, or both have no op in common.
Overlay overlay_of(const Recording& first, const Recording& second,
                   std::optional<int> step = std::nullopt);

/// When each step of a recording and all before it are done, and the start of the first. (Replicas
/// of a stage may end their steps out of turn.) Ascending. Throws UsageError where a recording has
/// no spans, where one is of no step, and where a step ends before the one before it begins.
struct StepBounds {
  Time start{};
  std::vector<Time> ends;
};
StepBounds step_bounds(const Recording& recording);

/// The pace of a simulated outcome. Else the time of the step of median length, from the end of the
/// one before; of a single step the step time of the outcome, or its length.
Time steady_step(const Recording& recording);

}  // namespace stageline
