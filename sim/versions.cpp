#include "sim/versions.hpp"

#include <algorithm>
#include <limits>

#include "sim/rules.hpp"

namespace stageline {
namespace {

bool reads_weights(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
    case OpKind::input_grad:
    case OpKind::backward:
    case OpKind::recompute:
      return true;
    case OpKind::weight_grad:
    case OpKind::update:
    case OpKind::reduce_grad:
    case OpKind::send_forward:
    case OpKind::receive_forward:
    case OpKind::send_backward:
    case OpKind::receive_backward:
    case OpKind::offload:
    case OpKind::prefetch:
      return false;
  }
  return false;
}

// One stage on one of its devices: its compute spans, in order.
struct Copy {
  int device = 0;
  std::vector<Span> spans;
};

class StageReader {
 public:
  StageReader(const Program& program, int stage, const std::vector<std::uint32_t>& entered)
      : program_(program),
        entered_(entered),
        group_(static_cast<std::uint32_t>(microbatches_per_update(program, stage))),
        forward_version_(program.total_microbatches()) {}

  void read(const Copy& copy) {
    std::vector<Time> superseded;  // by version, when its successor was there
    std::vector<Time> last_read{Time{}};
    for (const Span& span : copy.spans) {
      const auto newest = static_cast<std::uint32_t>(superseded.size());
      if (span.op.kind == OpKind::update) {
        superseded.push_back(span.end);
        last_read.push_back(Time{});
        continue;
      }
      if (!reads_weights(span.op.kind)) continue;
      const std::uint32_t version = version_read(span.op, newest);
      last_read[version] = std::max(last_read[version], span.end);
      if (span.op.kind == OpKind::forward) {
        note_staleness(span.op.microbatch / group_, version);
      } else if (version != forward_version_[span.op.microbatch]) {
        result_.consistent = false;
      }
    }
    for (std::size_t version = 0; version < superseded.size(); ++version) {
      if (last_read[version] <= superseded[version]) continue;
      result_.events.push_back({superseded[version], copy.device, +1});
      result_.events.push_back({last_read[version], copy.device, -1});
    }
  }

  StageVersions finish() {
    auto& events = result_.events;
    std::sort(events.begin(), events.end(), [](const VersionEvent& a, const VersionEvent& b) {
      return a.at != b.at           ? a.at < b.at
             : a.change != b.change ? a.change < b.change
                                    : a.device < b.device;
    });
    std::vector<int> held(program_.devices.size(), 1);
    for (const VersionEvent& event : events) {
      int& here = held[static_cast<std::size_t>(event.device)];
      here += event.change;
      result_.held_peak = std::max(result_.held_peak, here);
    }
    if (forwards_ > 0) result_.staleness_mean = sum_ / forwards_;
    return std::move(result_);
  }

  /// Updates of the first stage that each micro-batch's forward has seen, in micro-batches.
  std::vector<std::uint32_t> entered_after() const {
    std::vector<std::uint32_t> counts;
    for (const std::uint32_t version : forward_version_) counts.push_back(version * group_);
    return counts;
  }

 private:
  std::uint32_t version_read(Op op, std::uint32_t newest) {
    std::uint32_t& of_forward = forward_version_[op.microbatch];
    switch (program_.weights) {
      case WeightRule::flush:
      case WeightRule::latest:
        if (op.kind == OpKind::forward) of_forward = newest;
        return newest;
      case WeightRule::stash:
      case WeightRule::double_buffer:
        if (op.kind == OpKind::forward) of_forward = newest;
        return of_forward;
      case WeightRule::vertical_sync:
        if (op.kind == OpKind::forward) {
          of_forward =
              entered_.empty() ? newest : std::min(newest, entered_[op.microbatch] / group_);
        }
        return of_forward;
    }
    return newest;
  }

  void note_staleness(std::uint32_t own_update, std::uint32_t version) {
    const double staleness = static_cast<double>(own_update) - static_cast<double>(version);
    result_.staleness_min = forwards_ == 0 ? staleness : std::min(result_.staleness_min, staleness);
    result_.staleness_max = forwards_ == 0 ? staleness : std::max(result_.staleness_max, staleness);
    sum_ += staleness;
    forwards_ += 1;
  }

  const Program& program_;
  const std::vector<std::uint32_t>& entered_;
  std::uint32_t group_;
  std::vector<std::uint32_t> forward_version_;  // by micro-batch
  StageVersions result_;
  double sum_ = 0;
  double forwards_ = 0;
};

}  // namespace

std::vector<StageVersions> versions_of(const Program& program, const Timeline& timeline) {
  std::vector<std::vector<Copy>> copies(static_cast<std::size_t>(program.stages()));
  for (std::size_t s = 0; s < copies.size(); ++s) {
    for (const int device : program.placement.stage[s].replicas) copies[s].push_back({device, {}});
  }
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (const Span& span : timeline.lane(static_cast<int>(device), LaneKind::compute)) {
      for (Copy& copy : copies[span.op.stage]) {
        if (copy.device == static_cast<int>(device)) copy.spans.push_back(span);
      }
    }
  }
  std::vector<StageVersions> result;
  std::vector<std::uint32_t> entered;  // stays empty while the first stage is read
  for (std::size_t s = 0; s < copies.size(); ++s) {
    StageReader reader(program, static_cast<int>(s), entered);
    for (const Copy& copy : copies[s]) reader.read(copy);
    result.push_back(reader.finish());
    if (s == 0 && program.weights == WeightRule::vertical_sync) entered = reader.entered_after();
  }
  return result;
}

}  // namespace stageline
