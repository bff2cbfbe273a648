#include "sim/analysis/versions.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "sim/costs.hpp"
#include "sim/engine.hpp"
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
    case OpKind::send_stash:
    case OpKind::receive_stash:
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return false;
  }
  return false;
}

// One stage on one of its devices: its compute spans, in order. Where another device updates the
// weights, their arrival stands among them as an update.
struct Copy {
  int device = 0;
  std::vector<Span> spans;
};

class StageReader {
 public:
  // `reads`: where every pass is noted; null: nowhere.
  StageReader(const Program& program, int stage, const std::vector<std::uint32_t>& entered,
              std::vector<VersionRead>* reads)
      : program_(program),
        entered_(entered),
        reads_(reads),
        group_(static_cast<std::uint32_t>(microbatches_per_update(program, stage))),
        forward_version_(program.total_microbatches()),
        moved_on_(program.total_microbatches()) {}

  void read(const Copy& copy) {
    std::vector<Time> superseded;  // by version, when its successor was there
    std::vector<Time> last_read{Time{}};
    const bool synced = program_.weights == WeightRule::vertical_sync;
    std::size_t in_reach = 0;  // with vertical sync: the oldest version that may still be asked for
    for (const Span& span : copy.spans) {
      const auto newest = static_cast<std::uint32_t>(superseded.size());
      if (span.op.kind == OpKind::update) {
        superseded.push_back(span.end);
        last_read.push_back(Time{});
        continue;
      }
      if (reads_ != nullptr) note_read(span.op, copy.device, newest);
      if (!reads_weights(span.op.kind)) continue;
      const std::uint32_t version = version_read(span.op, newest);
      if (version >= last_read.size()) last_read.resize(version + std::size_t{1});
      last_read[version] = std::max(last_read[version], span.end);
      if (span.op.kind == OpKind::forward) {
        note_staleness(span.op.microbatch / group_, version);
        // Which version the next forward will ask for is not known before it is there: none older
        // than this one's.
        for (; synced && in_reach < version; ++in_reach) {
          last_read[in_reach] = std::max(last_read[in_reach], span.start);
        }
      } else if (version != forward_version_[span.op.microbatch]) {
        note_other_version(span.op.microbatch, version);
      }
    }
    for (; synced && in_reach < superseded.size(); ++in_reach) {
      last_read[in_reach] = std::max(last_read[in_reach], copy.spans.back().end);
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
    count_staleness();
    for (const int updates : moved_on_) {
      result_.read_other += updates > 0 ? 1 : 0;
      result_.read_other_by = std::max(result_.read_other_by, updates);
    }
    result_.consistent = result_.read_other == 0;
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
        if (op.kind == OpKind::forward) of_forward = newest;
        return of_forward;
      case WeightRule::double_buffer:
        if (op.kind == OpKind::forward) {
          of_forward = std::min(newest, delayed_version(program_, op));
        }
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

  void note_read(Op op, int device, std::uint32_t newest) {
    if (op.kind != OpKind::weight_grad && !reads_weights(op.kind)) return;
    const bool rebuilt = program_.correction == moving_average && op.kind != OpKind::forward;
    reads_->push_back({op, device, rebuilt ? newest : version_read(op, newest)});
  }

  // Below 0 where micro-batches are updated out of order, so that a forward reads past its own.
  void note_staleness(std::uint32_t own_update, std::uint32_t version) {
    staleness_.push_back(static_cast<int>(own_update) - static_cast<int>(version));
  }

  void note_other_version(std::uint32_t microbatch, std::uint32_t version) {
    const int updates =
        std::abs(static_cast<int>(version) - static_cast<int>(forward_version_[microbatch]));
    moved_on_[microbatch] = std::max(moved_on_[microbatch], updates);
  }

  void count_staleness() {
    if (staleness_.empty()) return;
    const auto [least, most] = std::minmax_element(staleness_.begin(), staleness_.end());
    const int from = *least;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(*most - from + 1));
    double sum = 0;
    for (const int updates : staleness_) {
      counts[static_cast<std::size_t>(updates - from)] += 1;
      sum += updates;
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) result_.staleness.push_back({from + static_cast<int>(i), counts[i]});
    }
    result_.staleness_min = result_.staleness.front().updates;
    result_.staleness_max = result_.staleness.back().updates;
    result_.staleness_mean = sum / static_cast<double>(staleness_.size());
  }

  const Program& program_;
  const std::vector<std::uint32_t>& entered_;
  std::vector<VersionRead>* reads_;
  std::uint32_t group_;
  std::vector<std::uint32_t> forward_version_;  // by micro-batch
  std::vector<int> moved_on_;   // by micro-batch: updates between its forward's and its backward's
  std::vector<int> staleness_;  // one entry a forward, as they come
  StageVersions result_;
};

// Which of two ops comes first where neither takes time: as if every op took equally long. So an op
// stands behind all that it waits for, whatever the moments say.
class Order {
 public:
  explicit Order(const Program& program) : program_(program) {}

  // Whether `arrival` is over when `reader`, which takes no time and stands at that moment, begins.
  bool is_over(Op arrival, Op reader) {
    if (!span_) run();
    const auto last = span_->find(arrival);
    const auto next = span_->find(reader);
    if (last == span_->end() || next == span_->end()) return true;
    return last->second.end <= next->second.start;
  }

 private:
  void run() {
    Costs costs;
    costs.stage.resize(program_.placement.stage.size());
    for (const StageEdge edge : program_.edges) costs.edges.push_back({edge, {}, {}});
    costs.network.devices = static_cast<int>(program_.devices.size());
    const std::size_t devices = program_.devices.size();
    costs.network.routes.resize(devices * devices);
    costs.network.to_host.resize(devices);
    costs.network.from_host.resize(devices);
    TaskGraph graph = compile(program_, costs);
    std::fill(graph.duration.begin(), graph.duration.end(), Time{1});
    const Timeline timeline = timeline_of(program_, graph, sweep(graph));
    span_.emplace();
    for (const Spans& lane : timeline.lanes) {
      for (const Span& span : lane) span_->emplace(span.op, span);
    }
  }

  const Program& program_;
  std::optional<std::map<Op, Span>> span_;
};

// The copies of a stage whose F, I and W are on several devices, F's first: what it reads, the
// others are held against.
std::vector<Copy> copies_apart(const Program& program, const Timeline& timeline, int stage,
                               Order& order) {
  const StagePlace& place = program.placement.stage[static_cast<std::size_t>(stage)];
  const int f = place.replicas[0];
  const int w = place.weight_grad.empty() ? f : place.weight_grad[0];
  std::vector<int> devices{f};
  for (const int device : place.input_grad) devices.push_back(device);
  devices.push_back(w);
  std::vector<Copy> copies;
  for (const int device : devices) {
    const bool known = std::any_of(copies.begin(), copies.end(),
                                   [&](const Copy& copy) { return copy.device == device; });
    if (known) continue;
    std::vector<Span> arrivals;
    const auto take = [&](int from, LaneKind lane, OpKind kind) {
      for (const Span& span : timeline.lane(from, lane)) {
        if (span.op.stage == stage && span.op.kind == kind) arrivals.push_back(span);
      }
    };
    if (device != w && program.weights_transfer) {
      take(device, LaneKind::receive, OpKind::receive_weights);
    } else if (device != w) {
      take(w, LaneKind::compute, OpKind::update);
    }
    std::sort(arrivals.begin(), arrivals.end(),
              [](const Span& a, const Span& b) { return a.op.microbatch < b.op.microbatch; });
    Copy copy{device, {}};
    std::size_t arrived = 0;
    const auto arrive = [&] {
      copy.spans.push_back(arrivals[arrived++]);
      copy.spans.back().op.kind = OpKind::update;
    };
    const auto is_there = [&](const Span& arrival, const Span& reader) {
      if (arrival.end != reader.start || reader.start < reader.end) {
        return arrival.end <= reader.start;
      }
      return order.is_over(arrival.op, reader.op);
    };
    for (const Span& span : timeline.lane(device, LaneKind::compute)) {
      if (span.op.stage != stage) continue;
      while (arrived < arrivals.size() && is_there(arrivals[arrived], span)) arrive();
      copy.spans.push_back(span);
    }
    while (arrived < arrivals.size()) arrive();
    copies.push_back(std::move(copy));
  }
  return copies;
}

// The passes of each stage, by the devices that hold its weights.
std::vector<std::vector<Copy>> all_copies(const Program& program, const Timeline& timeline) {
  std::vector<std::vector<Copy>> copies(static_cast<std::size_t>(program.stages()));
  Order order(program);
  for (std::size_t s = 0; s < copies.size(); ++s) {
    const StagePlace& place = program.placement.stage[s];
    if (place.apart()) continue;
    for (const int device : place.replicas) copies[s].push_back({device, {}});
  }
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (const Span& span : timeline.lane(static_cast<int>(device), LaneKind::compute)) {
      for (Copy& copy : copies[span.op.stage]) {
        if (copy.device == static_cast<int>(device)) copy.spans.push_back(span);
      }
    }
  }
  for (std::size_t s = 0; s < copies.size(); ++s) {
    if (!program.placement.stage[s].apart()) continue;
    copies[s] = copies_apart(program, timeline, static_cast<int>(s), order);
  }
  return copies;
}

std::vector<StageVersions> read_all(const Program& program, const Timeline& timeline,
                                    std::vector<VersionRead>* reads) {
  const std::vector<std::vector<Copy>> copies = all_copies(program, timeline);
  std::vector<StageVersions> result;
  std::vector<std::uint32_t> entered;  // stays empty while the first stage is read
  for (std::size_t s = 0; s < copies.size(); ++s) {
    StageReader reader(program, static_cast<int>(s), entered, reads);
    for (const Copy& copy : copies[s]) reader.read(copy);
    result.push_back(reader.finish());
    if (s == 0 && program.weights == WeightRule::vertical_sync) entered = reader.entered_after();
  }
  return result;
}

}  // namespace

std::vector<StageVersions> versions_of(const Program& program, const Timeline& timeline) {
  return read_all(program, timeline, nullptr);
}

std::vector<VersionRead> versions_read(const Program& program, const Timeline& timeline) {
  std::vector<VersionRead> reads;
  read_all(program, timeline, &reads);
  return reads;
}

}  // namespace stageline
