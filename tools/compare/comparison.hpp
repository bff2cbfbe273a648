// Many schedules on one setting: a row each, and who wins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/inputs/setting.hpp"
#include "tools/study/ranking.hpp"
#include "tools/study/study.hpp"

namespace stageline {

/// An outcome, or the reason why there is none.
struct Row {
  Case asked;
  std::string schedule;
  std::optional<Outcome> outcome;
  std::string why_not;
};

/// Whether its updates are synchronous: as they ran, else as the schedule is known.
Synchrony block_of(const Row& row);

/// A row for each number of devices and, within it, each schedule. A case that cannot be run is a
/// row; an error that every row shares is bad input, and thrown as UsageError. Outcomes are without
/// task graphs, since a sweep has many rows.
std::vector<Row> compare(const SettingRequest& request, const Setting& setting,
                         const std::vector<ScheduleSpec>& schedules);

/// The rows with outcomes of one kind, ranked. `rows`: indices into the comparison, best first.
struct RankedRows {
  Synchrony synchrony = Synchrony::synchronous;
  std::vector<std::size_t> rows;
  std::string sentence;  // the winner among those that fit, and the reason
};
RankedRows ranked(const std::vector<Row>& rows, Synchrony synchrony);

}  // namespace stageline
