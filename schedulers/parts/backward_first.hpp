// Orders that papers give as a rule and not as a formula: the rule is run forward on paper, in
// slots of equal length that know nothing of real costs, and what it did is the order.
#pragma once

#include <vector>

#include "sim/op.hpp"
#include "sim/program.hpp"

namespace stageline {

/// Micro-batches that go through all stages and back, by stage on these devices.
struct Flow {
  std::vector<int> device;
  int microbatches = 0;
};

/// A forward or backward in a device's order. Micro-batches are counted within the flow.
struct FlowTurn {
  OpKind kind = OpKind::forward;
  int flow = 0;
  int stage = 0;
  int microbatch = 0;
};

/// The orders of the devices when each, in every slot, does a backward if one is due, of the
/// earliest stage, else a forward, of the deepest stage; of several flows the first. A slot holds
/// one backward, or the forwards of `together` micro-batches. At most `window` such groups of a
/// flow are under way. O(slots · stages · flows), where no device idles for long O(turns · stages a
/// device).
std::vector<std::vector<FlowTurn>> backward_first(const std::vector<Flow>& flows, int devices,
                                                  int together, int window);

/// Appends step `step` of the program to the lists of its devices: these turns, in their order, of
/// micro-batches counted within the step.
void append(Program& program, const std::vector<std::vector<FlowTurn>>& orders, int step);

}  // namespace stageline
