// Many schedules side by side: their rows, rankings, causes and scenarios, and what to do instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/answers/question.hpp"
#include "tools/compare/advice.hpp"
#include "tools/compare/rank_by.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/study/whatif/sensitivity.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::answers {

/// Which rows are simulated once more, with their memory over time, to be drawn.
enum class Redrawn : std::uint8_t {
  none,
  best,       // the recommended row and the runner-up; with `why` the two rows
  explained,  // these, with waterfalls, and the sensitivities of the first
};

/// Takes all schedules where none is named.
struct ComparisonQuestion : SettingQuestion {
  /// As ranked() takes it. Empty: default_within, or where rows tie the best of them.
  std::optional<double> within{};
  RankBy by{};                      // what rows are ranked by
  TrainingBudget budget{};          // what a cost is of
  std::optional<CauseOrder> why{};  // of two schedules: the order of causes
  ScenarioRequest scenarios{};      // without a perturbation there are none
  int workers = 0;                  // as in compare()
  Keep keep = Keep::facts;
  bool changes = false;  // search what would fit, where no row does
  bool alone = false;    // ask whether one device is faster
  Redrawn redrawn = Redrawn::none;
};

struct Comparison {
  Setting setting;
  std::vector<Row> rows{};
  std::vector<RankedRows> orders{};      // synchronous, asynchronous
  std::vector<Uncertainty> uncertain{};  // by row; empty without scenarios
  std::vector<NamedWaterfall> both{};    // with `why`
  WaysToFit ways{};
  std::string alone{};              // one_device_advice()
  std::vector<std::string> ties{};  // notes_on_advice() of the synchronous rows
  /// The rows that tie with the fastest, itself one of them; empty where no row has a range.
  std::vector<std::size_t> tied{};
  bool fits = false;                 // any row, or its memory is unknown
  std::vector<std::string> notes{};  // on scenarios, and on what `stop` left out
  bool stopped = false;              // `stop` came; the rows that were done are there
  std::string interrupted{};         // how far it came

  std::vector<Case> drawn{};                 // as Redrawn says
  std::vector<Outcome> outcomes{};           // of these
  std::vector<NamedWaterfall> waterfalls{};  // of these; with `why` as `both`
  std::optional<Sensitivity> sensitivity{};  // of the first

  /// Whether it is of several numbers of devices.
  bool sweep() const { return setting.device_counts.size() > 1; }
};

/// Throws NothingKnown where `watch.stop` came first, and what opened_setting() and compare()
/// throw.
Comparison answer(const ComparisonQuestion& question, const Watch& watch = {});

}  // namespace stageline::answers
