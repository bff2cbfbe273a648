// Steps of a case without some of the causes that lengthen it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/costs.hpp"
#include "sim/program.hpp"
#include "sim/task_graph.hpp"
#include "tools/study/case.hpp"
#include "tools/study/outcome.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline {

/// A set of causes: bit k is the cause of that number.
using Removed = std::uint32_t;
constexpr Removed bit_of(StepCause cause) { return Removed{1} << static_cast<unsigned>(cause); }

/// The run of a case without some causes: from what its durations are.
struct Counterfactual {
  const Program* program = nullptr;
  TaskGraph graph;
  Costs costs;

  /// Compute of each device in a step.
  std::vector<Time> busy() const;
  Time step() const;
};

/// Removes causes in the order of the waterfall, from the last to the first, whatever the order in
/// which they are asked for: a set of causes has one step.
class Counterfactuals {
 public:
  /// `nominal`: the case's outcome, both of which must outlive this. Throws what simulating the
  /// case throws.
  Counterfactuals(const Case& asked, const Outcome& nominal);
  ~Counterfactuals();
  Counterfactuals(const Counterfactuals&) = delete;
  Counterfactuals& operator=(const Counterfactuals&) = delete;

  /// Those that can be removed and take any time, in the order of StepCause. Fill and drain,
  /// dependency and jitter cannot.
  const std::vector<StepCause>& present() const { return present_; }
  /// The step without them; each set is simulated once.
  Time step(Removed removed);
  Counterfactual without(Removed removed) const;

 private:
  struct Base;  // one order of ops
  bool changes(const Base& base, StepCause cause) const;
  void find_unlimited(const Case& asked, const Outcome& nominal);

  std::unique_ptr<Base> given_;
  std::unique_ptr<Base> unlimited_;  // null: memory limits nothing
  std::vector<StepCause> present_;
  std::map<Removed, Time> steps_;
};

}  // namespace stageline
