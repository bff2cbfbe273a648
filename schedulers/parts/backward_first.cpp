#include "schedulers/parts/backward_first.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>

#include "schedulers/order.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// How far each stage of a flow is. Micro-batches pass every stage in turn, so a count is
// enough.
struct Progress {
  std::vector<int> forward;   // groups
  std::vector<int> backward;  // micro-batches
};

class Slots {
 public:
  Slots(const std::vector<Flow>& flows, int devices, int together, int window)
      : flows_(flows),
        together_(together),
        window_(window),
        progress_(flows.size()),
        here_(as_size(devices)),
        order_(here_.size()) {
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::size_t stages = flows[f].device.size();
      progress_[f].forward.resize(stages);
      progress_[f].backward.resize(stages);
      for (std::size_t s = 0; s < stages; ++s) {
        nth(here_, flows[f].device[s]).push_back({f, s});
      }
      left_ += static_cast<std::int64_t>(stages) * flows[f].microbatches;
    }
    for (auto& stages : here_) {
      std::stable_sort(stages.begin(), stages.end(),
                       [](const At& a, const At& b) { return a.stage < b.stage; });
    }
  }

  std::vector<std::vector<FlowTurn>> run() {
    std::vector<std::optional<FlowTurn>> now(here_.size());
    while (left_ > 0) {
      bool any = false;
      for (std::size_t d = 0; d < here_.size(); ++d) any |= (now[d] = choose(here_[d])).has_value();
      assert(any);
      if (!any) break;
      for (std::size_t d = 0; d < here_.size(); ++d) {
        if (now[d]) take(*now[d], order_[d]);
      }
    }
    return std::move(order_);
  }

 private:
  struct At {
    std::size_t flow;
    std::size_t stage;
  };

  int groups(std::size_t flow) const {
    return (flows_[flow].microbatches + together_ - 1) / together_;
  }

  bool backward_due(At at) const {
    const Progress& of = progress_[at.flow];
    const int m = of.backward[at.stage];
    const bool last = at.stage + 1 == of.backward.size();
    return m < flows_[at.flow].microbatches && of.forward[at.stage] > m / together_ &&
           (last || of.backward[at.stage + 1] > m);
  }

  bool forward_due(At at) const {
    const Progress& of = progress_[at.flow];
    const int group = of.forward[at.stage];
    if (group >= groups(at.flow)) return false;
    return at.stage > 0 ? of.forward[at.stage - 1] > group
                        : group - of.backward[0] / together_ < window_;
  }

  std::optional<FlowTurn> choose(const std::vector<At>& stages) const {
    const auto turn = [&](OpKind kind, At at, int microbatch) {
      return FlowTurn{kind, static_cast<int>(at.flow), static_cast<int>(at.stage), microbatch};
    };
    for (const At at : stages) {
      if (!backward_due(at)) continue;
      return turn(OpKind::backward, at, progress_[at.flow].backward[at.stage]);
    }
    for (auto at = stages.rbegin(); at != stages.rend(); ++at) {
      if (!forward_due(*at)) continue;
      return turn(OpKind::forward, *at, progress_[at->flow].forward[at->stage] * together_);
    }
    return std::nullopt;
  }

  void take(FlowTurn turn, std::vector<FlowTurn>& order) {
    const auto flow = as_size(turn.flow);
    const auto stage = as_size(turn.stage);
    if (turn.kind == OpKind::backward) {
      ++progress_[flow].backward[stage];
      order.push_back(turn);
      --left_;
      return;
    }
    ++progress_[flow].forward[stage];
    const int end = std::min(turn.microbatch + together_, flows_[flow].microbatches);
    for (; turn.microbatch < end; ++turn.microbatch) order.push_back(turn);
  }

  const std::vector<Flow>& flows_;
  int together_;
  int window_;
  std::vector<Progress> progress_;            // by flow
  std::vector<std::vector<At>> here_;         // by device, its stages, earliest first
  std::vector<std::vector<FlowTurn>> order_;  // by device
  std::int64_t left_ = 0;                     // backwards
};

}  // namespace

std::vector<std::vector<FlowTurn>> backward_first(const std::vector<Flow>& flows, int devices,
                                                  int together, int window) {
  return Slots(flows, devices, together, window).run();
}

void append(Program& program, const std::vector<std::vector<FlowTurn>>& orders, int step) {
  for (const std::vector<FlowTurn>& order : orders) {
    for (const FlowTurn turn : order) {
      const auto m = static_cast<std::uint32_t>(step * program.microbatches + turn.microbatch);
      Order here(program, turn.stage);
      turn.kind == OpKind::forward ? here.forward(m) : here.backward(m);
    }
  }
}

}  // namespace stageline
