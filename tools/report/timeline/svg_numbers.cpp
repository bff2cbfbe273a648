#include "tools/report/timeline/svg_numbers.hpp"

#include <algorithm>
#include <set>

#include "sim/analysis/versions.hpp"
#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

constexpr std::uint32_t eighth = 8;

// By micro-batch, the device of its first stage's forward; −1: it has none.
std::vector<int> starts_of(const Timeline& timeline) {
  std::vector<int> starts;
  for (int device = 0; device < static_cast<int>(timeline.devices.size()); ++device) {
    for (const Span& span : timeline.lane(device, LaneKind::compute)) {
      if (span.op.kind != OpKind::forward || span.op.stage != 0) continue;
      const auto at = as_size(span.op.microbatch);
      if (at >= starts.size()) starts.resize(at + 1, -1);
      starts[at] = device;
    }
  }
  return starts;
}

// Whether every stage of the device has forwards of one direction alone; adds whether there are
// two.
bool has_own_stages(const Spans& spans, const std::vector<int>& direction, bool& two) {
  std::map<std::uint16_t, int> by_stage;
  std::set<int> all;
  for (const Span& span : spans) {
    if (span.op.kind != OpKind::forward || as_size(span.op.microbatch) >= direction.size())
      continue;
    const int one = direction[as_size(span.op.microbatch)];
    all.insert(one);
    if (by_stage.emplace(span.op.stage, one).first->second != one) return false;
  }
  two = two || all.size() > 1;
  return true;
}

}  // namespace

std::vector<int> directions_of(const Timeline& timeline) {
  std::vector<int> direction = starts_of(timeline);
  const std::set<int> starts(direction.begin(), direction.end());
  if (starts.size() < 2 || *starts.begin() < 0) return {};
  for (int& one : direction) {
    one = static_cast<int>(std::distance(starts.begin(), starts.find(one)));
  }
  bool two = false;
  for (int device = 0; device < static_cast<int>(timeline.devices.size()); ++device) {
    if (!has_own_stages(timeline.lane(device, LaneKind::compute), direction, two)) return {};
  }
  return two ? direction : std::vector<int>{};
}

SpanNumbers::SpanNumbers(const Drawing& drawing, OpNumbers counted) : counted_(counted) {
  if (counted == OpNumbers::by_direction) {
    std::map<int, std::uint32_t> next;
    for (const int direction : directions_of(drawing.timeline)) own_.push_back(next[direction]++);
  }
  if (counted == OpNumbers::versions) {
    for (const VersionRead& read : versions_read(drawing.program, drawing.timeline)) {
      reads_[{read.device, read.op.kind, read.op.stage, read.op.microbatch}] = read.version;
    }
  }
}

std::string SpanNumbers::of(int device, const Op& op) const {
  if (op.kind == OpKind::update) return "U";
  switch (counted_) {
    case OpNumbers::microbatches:
      break;
    case OpNumbers::microbatches_from_one:
      return std::to_string(op.microbatch + 1);
    case OpNumbers::by_direction:
      if (as_size(op.microbatch) < own_.size()) {
        return std::to_string(own_[as_size(op.microbatch)]);
      }
      break;
    case OpNumbers::versions: {
      const auto read = reads_.find({device, op.kind, op.stage, op.microbatch});
      return read == reads_.end() ? "" : std::to_string(read->second);
    }
  }
  return std::to_string(op.microbatch);
}

std::string SpanNumbers::of_stage(const Op& op) const {
  if (counted_ == OpNumbers::versions) return "";
  return std::to_string(op.stage + (counted_ == OpNumbers::microbatches_from_one ? 1 : 0));
}

bool SpanNumbers::is_eighth(const Op& op) const {
  return op.kind != OpKind::update && op.microbatch % eighth == 0;
}

std::string SpanNumbers::note() const {
  switch (counted_) {
    case OpNumbers::microbatches:
      return "";
    case OpNumbers::microbatches_from_one:
      return "Numbers of micro-batches and stages count from 1.";
    case OpNumbers::by_direction:
      return own_.empty() ? "" : "Numbers count the micro-batches of each direction by itself.";
    case OpNumbers::versions:
      return "Numbers count the updates that the weights which an op reads have seen.";
  }
  return "";  // unreachable; g++ requires it
}

}  // namespace stageline::report
