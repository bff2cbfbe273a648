// Finds the tensors that leave the device of their maker.
#include "cost_models/handover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

// Whether each tensor stays on its device between these homes of two roles: of several, as those of
// replicas, a micro-batch takes the same place in both lists.
bool stays(const std::vector<int>& from, const std::vector<int>& to) { return from == to; }

class Handovers {
 public:
  Handovers(Costs& costs, const Placement& placement, const Handover& handover)
      : costs_(costs), placement_(placement), handover_(handover) {}

  void add() {
    for (const EdgeCosts& edge : costs_.edges) {
      add_activation(edge);
      add_gradient(edge);
    }
    for (std::size_t s = 0; s < costs_.stage.size(); ++s) {
      if (placement_.stage[s].apart()) {
        add_stash(s);
        add_weights(s);
      }
      add_sums(s, 1, replicas(s));
    }
  }

  void add_copies(int copies) {
    for (std::size_t s = 0; s < costs_.stage.size(); ++s) {
      add_sums(s, replicas(s), replicas(s) * copies);
    }
  }

 private:
  const std::vector<int>& homes(std::size_t stage, Role role) const {
    return placement_.stage[stage].homes(role);
  }
  Time written(Bytes bytes) const { return transfer_time(bytes, handover_.write); }
  Time read(Bytes bytes) const { return transfer_time(bytes, handover_.read); }

  void add(std::size_t stage, Time StageCosts::*op, Time more) {
    Time& time = costs_.stage[stage].*op;
    time += more;  // at most 2^57 and 2^62 ps
    if (time <= longest_input) return;
    throw UsageError(
        fmt::format("stage {} takes {:.3g} s a micro-batch with what it hands over; at most {:.0f} "
                    "s are allowed",
                    stage, to_seconds(time), to_seconds(longest_input)));
  }
  // Stores drain while the op computes.
  void write(std::size_t stage, Time StageCosts::*op, Bytes bytes) {
    const Time beyond = written(bytes) - costs_.stage[stage].*op;
    if (beyond > Time{}) add(stage, op, beyond);
  }
  bool has_input_grad(std::size_t stage) const { return costs_.stage[stage].input_grad > Time{}; }

  void add_activation(const EdgeCosts& edge) {
    if (stays(homes(edge.edge.from, Role::forward), homes(edge.edge.to, Role::forward))) return;
    write(edge.edge.from, &StageCosts::forward, edge.activation);
    add(edge.edge.to, &StageCosts::forward, read(edge.activation));
  }

  // Where W follows I on its device, the gradient is in the cache by then.
  void add_gradient(const EdgeCosts& edge) {
    const std::size_t reader = edge.edge.from;
    const std::vector<int>& makers = homes(edge.edge.to, Role::input_grad);
    if (stays(makers, homes(reader, Role::input_grad)) &&
        stays(makers, homes(reader, Role::weight_grad))) {
      return;
    }
    // A stage that reads the data alone has no I.
    if (has_input_grad(edge.edge.to)) write(edge.edge.to, &StageCosts::input_grad, edge.gradient);
    write(edge.edge.to, &StageCosts::backward, edge.gradient);
    if (has_input_grad(reader)) add(reader, &StageCosts::input_grad, read(edge.gradient));
    add(reader, &StageCosts::backward, read(edge.gradient));
    if (is_lone_weight_grad(reader)) add(reader, &StageCosts::weight_grad, read(edge.gradient));
  }

  bool is_lone_weight_grad(std::size_t stage) const {
    return !has_input_grad(stage) || placement_.stage[stage].weight_grad_apart();
  }

  void add_stash(std::size_t s) {
    const StagePlace& place = placement_.stage[s];
    const StageCosts& stage = costs_.stage[s];
    const Bytes stash = stage.stash();
    const bool to_input_grad = leaves(s, Role::input_grad);
    const bool to_weight_grad = place.device(Role::weight_grad) != place.replicas.front();
    if (to_input_grad || to_weight_grad) write(s, &StageCosts::forward, stash);
    if (to_input_grad && has_input_grad(s)) add(s, &StageCosts::input_grad, read(stash));
    if (!to_weight_grad) return;
    add(s, &StageCosts::backward, read(stash));
    if (is_lone_weight_grad(s)) add(s, &StageCosts::weight_grad, read(stash));
  }

  void add_weights(std::size_t s) {
    const Bytes weights = costs_.stage[s].weights;
    const int home = placement_.stage[s].device(Role::weight_grad);
    const auto elsewhere = [&](Role role) {
      const std::vector<int>& readers = homes(s, role);
      return std::any_of(readers.begin(), readers.end(), [&](int at) { return at != home; });
    };
    if (elsewhere(Role::forward)) add(s, &StageCosts::forward, read(weights));
    if (elsewhere(Role::input_grad) && has_input_grad(s)) {
      add(s, &StageCosts::input_grad, read(weights));
    }
    if (elsewhere(Role::forward) || elsewhere(Role::input_grad)) {
      write(s, &StageCosts::update, weights);
    }
  }

  int replicas(std::size_t s) const { return static_cast<int>(homes(s, Role::weight_grad).size()); }

  // Adds what it takes to read and write the sums of that many replicas, some of which are counted:
  // they add up each other's, which takes nothing else.
  void add_sums(std::size_t s, int counted, int replicas) {
    const Bytes sums = costs_.stage[s].gradients;
    if (counted == 1 && replicas > 1) add(s, &StageCosts::update, written(sums));
    for (int other = counted; other < replicas; ++other) {
      add(s, &StageCosts::update, read(sums));
    }
  }

  // Whether any part of a role is away from F.
  bool leaves(std::size_t s, Role role) const {
    const std::vector<int>& readers = homes(s, role);
    const int home = placement_.stage[s].replicas.front();
    return std::any_of(readers.begin(), readers.end(), [&](int at) { return at != home; });
  }

  Costs& costs_;
  const Placement& placement_;
  const Handover& handover_;
};

}  // namespace

void add_handover(Costs& costs, const Placement& placement, const Handover& handover) {
  if (!handover.is_free()) Handovers(costs, placement, handover).add();
}

void add_sums_of_copies(Costs& costs, const Placement& placement, const Handover& handover,
                        int copies) {
  if (!handover.is_free()) Handovers(costs, placement, handover).add_copies(copies);
}

}  // namespace stageline
