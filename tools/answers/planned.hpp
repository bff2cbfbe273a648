// What to do instead: the plan, and its recommended point simulated to be drawn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/inputs/setting.hpp"
#include "tools/planner/planner.hpp"
#include "tools/study/outcome.hpp"

namespace stageline::answers {

struct PlanQuestion {
  planner::PlanRequest request;
  /// Called with the setting as soon as it is open: what the request says of its model, such as the
  /// samples of an update. Null: nothing.
  std::function<void(const Setting&, planner::PlanRequest&)> complete{};
  bool drawn = false;  // simulate the recommended point once more, with memory over time
};

struct PlanAnswer {
  Setting setting;
  planner::PlanRequest request;  // complete
  planner::Plan plan{};
  bool interrupted = false;  // by `stop` of the request
  /// How the costs of the recommended micro-batch size came about, where nobody measured them.
  std::vector<std::string> size_notes{};
  std::vector<Case> drawn{};  // the recommended point, or nothing
  std::vector<Outcome> outcomes{};
};

/// Throws NothingKnown where `stop` came before there was a candidate that fits, and what
/// read_setting(), `complete` and plan() throw.
PlanAnswer answer(const PlanQuestion& question);

}  // namespace stageline::answers
