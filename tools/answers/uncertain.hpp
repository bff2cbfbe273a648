// The distribution of the step under scenarios, and a long run on a machine that fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/answers/question.hpp"
#include "tools/compare/long_run.hpp"
#include "tools/compare/uncertainty.hpp"

namespace stageline::answers {

/// Takes default_schedule() where none is named.
struct WhatIfQuestion : SettingQuestion {
  std::optional<double> by = 0.95;     // the quantile that rows are ranked by; empty: the mean
  ScenarioRequest scenarios{};         // but for what a Watch says
  std::optional<Failures> failures{};  // of the machine
  std::optional<double> run{};         // with failures: seconds of steps of the long run
};

struct WhatIfAnswer {
  Setting setting;
  std::vector<UncertainRow> rows{};
  std::vector<std::size_t> order{};  // not empty
  std::optional<LongRun> run{};
  std::vector<std::string> notes{};  // on settings and scenarios, behind those of the setting
  bool stopped = false;              // `stop` came; what was done until then is there

  const UncertainRow& best() const { return rows[order.front()]; }
  /// Those of the best row.
  std::size_t scenarios() const { return best().steps->step.size(); }
  bool fits() const;
};

/// Throws NothingKnown where `watch.stop` came before the first scenario, and what opened_setting()
/// and under_uncertainty() throw.
WhatIfAnswer answer(const WhatIfQuestion& question, const Watch& watch = {});

}  // namespace stageline::answers
