// Collects the changes of each device.
#include "sim/analysis/memory_changes.hpp"

#include <algorithm>

#include "sim/analysis/blocking_time.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/index.hpp"
#include "sim/stash_readers.hpp"

namespace stageline {
namespace {

using Changes = std::vector<std::vector<MemoryChange>>;  // by device

void add_versions(const Program& program, const Costs& costs, const Timeline& timeline,
                  Changes& changes) {
  const std::vector<StageVersions> versions = versions_of(program, timeline);
  for (std::size_t s = 0; s < versions.size(); ++s) {
    for (const VersionEvent& event : versions[s].copies) {
      nth(changes, event.device)
          .push_back(
              {event.at, costs.stage[s].weights * event.change, MemoryKind::versions, {}, {}});
    }
  }
}

// Where there are no messages, what an op makes for a stage on another device is there at once, and
// is held there until it is read.
void add_arrivals(const MemoryTables& tables, const Timeline& timeline, Changes& changes) {
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    for (const Span& span : timeline.lane(static_cast<int>(d), LaneKind::compute)) {
      tables.arrivals(span.op, static_cast<int>(d), [&](int to, Bytes bytes) {
        nth(changes, to).push_back({span.end, bytes, MemoryKind::buffers, {}, {}});
      });
    }
  }
}

// What the collectives inside an op, or a reduction, hold.
Bytes buffer_of(const Costs& costs, Op op) {
  const StageCosts& stage = costs.of(op);
  const bool used =
      op.kind == OpKind::reduce_grad || blocking_time(stage.blocking, op.kind) > Time{};
  return used ? stage.communication_buffer : Bytes{};
}

void hold(const Span& span, Bytes bytes, std::vector<MemoryChange>& changes) {
  if (bytes == Bytes{} || span.start == span.end) return;
  changes.push_back({span.start, bytes, MemoryKind::communication, {}, {}});
  changes.push_back({span.end, Bytes{-bytes.count}, MemoryKind::communication, {}, {}});
}

void add_communication(const Costs& costs, const Timeline& timeline, Changes& changes) {
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    const Spans& compute = timeline.lane(static_cast<int>(d), LaneKind::compute);
    for (std::size_t i = 0; i < compute.size(); ++i) {
      Bytes most = buffer_of(costs, compute[i].op);
      // The ops of an overlapped pair, which start and end together, take turns.
      if (compute[i].op.overlapped && i + 1 < compute.size()) {
        ++i;
        most = std::max(most, buffer_of(costs, compute[i].op));
      }
      hold(compute[i], most, changes[d]);
    }
    for (const Span& span : timeline.lane(static_cast<int>(d), LaneKind::send)) {
      if (span.op.kind == OpKind::reduce_grad) hold(span, buffer_of(costs, span.op), changes[d]);
    }
  }
}

// The device that holds a stage's stashes between OFFLOAD and PREFETCH: from the start of the one
// to the end of the other.
void add_copies(const MemoryTables& tables, const Costs& costs, const Timeline& timeline,
                Changes& changes) {
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (const LaneKind kind : {LaneKind::copy_out, LaneKind::copy_in}) {
      for (const Span& span : timeline.lane(static_cast<int>(device), kind)) {
        const Op op = span.op;
        const int there = stash_home(tables.program().placement.stage[op.stage], op.microbatch);
        if (there < 0) continue;
        const bool out = op.kind == OpKind::offload;
        nth(changes, there)
            .push_back(
                change_of_copy(tables, costs, op, out ? span.start : span.end, out ? 1 : -1));
      }
    }
  }
}

}  // namespace

MemoryChange change_of_copy(const MemoryTables& tables, const Costs& costs, Op copy, Time at,
                            int sign) {
  const StageCosts& stage = costs.of(copy);
  const bool rebuilt = tables.is_recomputed(copy);
  MemoryChange change;
  change.at = at;
  change.bytes = left_by_forward(stage, rebuilt) * sign;
  (rebuilt ? change.boundary : change.for_input_grad) =
      (rebuilt ? stage.boundary : stage.stash_input_grad) * sign;
  change.stage = copy.stage;
  change.stashes = rebuilt ? 0 : sign;
  return change;
}

void sort(std::vector<MemoryChange>& changes) {
  std::sort(changes.begin(), changes.end(), [](const MemoryChange& a, const MemoryChange& b) {
    return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
  });
}

std::vector<std::vector<MemoryChange>> changes_of(const MemoryTables& tables, const Costs& costs,
                                                  const Timeline& timeline) {
  Changes changes(timeline.devices.size());
  const Program& program = tables.program();
  const bool sends_weights =
      program.settings.weights_transfer &&
      std::any_of(program.placement.stage.begin(), program.placement.stage.end(),
                  [](const StagePlace& place) { return place.apart(); });
  if (keeps_versions(program.settings) || sends_weights) {
    add_versions(program, costs, timeline, changes);
  }
  if (!tables.has_messages()) add_arrivals(tables, timeline, changes);
  const bool holds_for_others =
      std::any_of(program.placement.stage.begin(), program.placement.stage.end(),
                  [](const StagePlace& place) { return !place.stash_homes.empty(); });
  if (holds_for_others) add_copies(tables, costs, timeline, changes);
  const bool communicates =
      std::any_of(costs.stage.begin(), costs.stage.end(),
                  [](const StageCosts& stage) { return stage.communication_buffer > Bytes{}; });
  if (communicates) add_communication(costs, timeline, changes);
  for (std::vector<MemoryChange>& list : changes) sort(list);
  return changes;
}

}  // namespace stageline
