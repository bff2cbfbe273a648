// What compare has found: rows, their order, and what is said of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/commands/compare_beside.hpp"
#include "tools/commands/compare_flags.hpp"
#include "tools/compare/advice.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline {

/// The flags as values.
struct CompareQuestion {
  SettingRequest request;
  Setting setting;
  double within = default_within;
  std::optional<CauseOrder> why{};
  ScenarioRequest scenarios{};

  bool sweep() const { return setting.device_counts.size() > 1; }
};
CompareQuestion compare_question(const CompareFlags& flags);

struct Compared {
  CompareQuestion question;
  ComparisonView plain_view;  // without scenarios
  std::vector<Row> rows{};
  RowScenarios found{};
  std::vector<NamedWaterfall> both{};  // with --why
  std::vector<RankedRows> orders{};    // synchronous, asynchronous
  bool fits = false;                   // any row, or its memory is unknown

  ComparisonView view() const;
};
/// Simulates the rows and ranks them. After a signal those that are done; throws Interrupted where
/// there are none.
Compared compared(const CompareFlags& flags, CompareQuestion question);

/// ways_to_fit(), unless it is not wanted or a signal has come.
WaysToFit ways_so_far(const CompareFlags& flags, Compared& compared);

/// Reasons why rows have no outcome, each once, with the rows that share it.
struct Impossible {
  Synchrony synchrony;  // of the first row
  int devices;
  std::string why_not;
  std::string schedules;

  /// "dapple on 3 devices: not possible: …"
  std::string sentence(bool sweep) const;
};
std::vector<Impossible> impossible_rows(const std::vector<Row>& rows);

/// What must be known to read the rows, each once.
std::vector<std::string> compare_notes(const CompareFlags& flags, const Compared& compared);

/// The setting as typed, and what plan takes, too.
std::string typed_question(const CompareFlags& flags);

}  // namespace stageline
