// Copies of weights: by replica, or by device of a stage with split roles.
#include "sim/analysis/weight_copies.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/index.hpp"
#include "sim/costs.hpp"
#include "sim/engine.hpp"

namespace stageline {
namespace {

// The order of two ops that take no time and are at the same moment: the order in which they would
// run if every op took equally long. An op is thus after everything that it waits for.
class Order {
 public:
  explicit Order(const Program& program) : program_(program) {}

  // Whether `arrival` is over when `reader`, which takes no time and is at the same moment, begins.
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
    costs.network = free_network(static_cast<int>(program_.devices.size()));
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

// The copies of one stage with split roles.
class SplitCopies {
 public:
  SplitCopies(const Program& program, const Timeline& timeline, int stage, Order& order)
      : program_(program),
        timeline_(timeline),
        stage_(stage),
        order_(order),
        updates_(nth(program.placement.stage, stage).device(Role::weight_grad)) {}

  std::vector<WeightCopy> all() {
    const StagePlace& place = nth(program_.placement.stage, stage_);
    std::vector<int> devices{place.device(Role::forward)};
    const auto add = [&](int device) {
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
        devices.push_back(device);
      }
    };
    for (const int device : place.input_grad) add(device);
    add(updates_);
    std::vector<WeightCopy> copies;
    for (const int device : devices) {
      copies.push_back({device, merged(device, arrivals(device)),
                        program_.settings.weights_transfer && device != updates_, sends(device)});
    }
    return copies;
  }

 private:
  // New weights on a device that does not make them, in order of the updates.
  std::vector<Span> arrivals(int device) const {
    if (device == updates_) return {};
    std::vector<Span> found;
    const bool sent = program_.settings.weights_transfer;
    const OpKind kind = sent ? OpKind::receive_weights : OpKind::update;
    for (const Span& span : timeline_.lane(sent ? device : updates_, lane_of(kind))) {
      if (span.op.stage == stage_ && span.op.kind == kind) found.push_back(span);
    }
    std::sort(found.begin(), found.end(),
              [](const Span& a, const Span& b) { return a.op.microbatch < b.op.microbatch; });
    return found;
  }

  std::vector<Span> sends(int device) const {
    std::vector<Span> found;
    for (const Span& span : timeline_.lane(device, LaneKind::send)) {
      if (span.op.stage == stage_ && span.op.kind == OpKind::send_weights) found.push_back(span);
    }
    return found;
  }

  std::vector<Span> merged(int device, const std::vector<Span>& arrivals) {
    std::vector<Span> spans;
    auto arrival = arrivals.begin();
    const auto arrive = [&] {
      spans.push_back(*arrival++);
      spans.back().op.kind = OpKind::update;
    };
    for (const Span& span : timeline_.lane(device, LaneKind::compute)) {
      if (span.op.stage != stage_) continue;
      while (arrival != arrivals.end() && is_there(*arrival, span)) arrive();
      spans.push_back(span);
    }
    while (arrival != arrivals.end()) arrive();
    return spans;
  }

  bool is_there(const Span& arrival, const Span& reader) {
    if (arrival.end != reader.start || reader.start < reader.end) {
      return arrival.end <= reader.start;
    }
    return order_.is_over(arrival.op, reader.op);
  }

  const Program& program_;
  const Timeline& timeline_;
  int stage_;
  Order& order_;
  int updates_;  // the device that updates the weights
};

}  // namespace

std::vector<std::vector<WeightCopy>> weight_copies(const Program& program,
                                                   const Timeline& timeline) {
  std::vector<std::vector<WeightCopy>> copies(program.placement.stage.size());
  for (std::size_t s = 0; s < copies.size(); ++s) {
    const StagePlace& place = program.placement.stage[s];
    if (place.apart()) continue;
    for (const int device : place.replicas) copies[s].push_back({device, {}, false, {}});
  }
  const int devices = static_cast<int>(timeline.devices.size());
  for (int device = 0; device < devices; ++device) {
    for (const Span& span : timeline.lane(device, LaneKind::compute)) {
      for (WeightCopy& copy : copies[span.op.stage]) {
        if (copy.device == device) copy.spans.push_back(span);
      }
    }
  }
  Order order(program);
  for (std::size_t s = 0; s < copies.size(); ++s) {
    if (!program.placement.stage[s].apart()) continue;
    copies[s] = SplitCopies(program, timeline, static_cast<int>(s), order).all();
  }
  return copies;
}

}  // namespace stageline
