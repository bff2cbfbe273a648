// Runs the cases of a comparison and ranks them.
#include "tools/compare/comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/errors.hpp"
#include "sim/numbers.hpp"
#include "tools/base/parallel.hpp"
#include "tools/compare/trial.hpp"
#include "tools/study/cases_at_a_time.hpp"

namespace stageline {

Synchrony block_of(const Row& row) {
  return row.outcome ? row.outcome->synchrony : row.asked.spec.scheduler->synchrony;
}

namespace {

Row row_of(Case asked, const ScheduleSpec& spec) {
  Row row{std::move(asked), spelled(spec), std::nullopt, ""};
  try {
    row.outcome = study(row.asked);
    row.outcome->graph = {};
    row.outcome->times = {};
  } catch (const UsageError& error) {
    row.why_not = error.what();
  } catch (const ProgramError& error) {
    row.why_not = fmt::format("{}: {}", row.schedule, error.what());
  } catch (const Deadlock& error) {
    row.why_not = error.what();
  }
  return row;
}

}  // namespace

std::vector<Row> compare(const SettingRequest& request, const Setting& setting,
                         const std::vector<ScheduleSpec>& schedules, int workers) {
  std::vector<Row> rows(setting.device_counts.size() * schedules.size());
  double largest = 1;
  for (const int devices : setting.device_counts) {
    largest = std::max(largest, case_size(request, setting, devices));
  }
  const int at_a_time = cases_at_a_time(largest, workers);
  in_parallel(rows.size(), at_a_time, [&](std::size_t i) {
    const int devices = setting.device_counts[i / schedules.size()];
    const ScheduleSpec& spec = schedules[i % schedules.size()];
    rows[i] = row_of(make_case(request, setting, spec, devices), spec);
  });
  const bool any =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.outcome.has_value(); });
  const auto refused =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !row.why_not.empty(); });
  if (!any) throw UsageError(refused == rows.end() ? "" : refused->why_not);
  return rows;
}

RankedRows ranked(const std::vector<Row>& rows, Synchrony synchrony, double within) {
  std::vector<const Outcome*> outcomes;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].outcome || rows[i].outcome->synchrony != synchrony) continue;
    outcomes.push_back(&*rows[i].outcome);
    of.push_back(i);
  }
  const Ranked order = rank(outcomes, within);
  RankedRows result;
  result.synchrony = synchrony;
  result.sentence = order.sentence;
  for (const std::size_t i : order.order) result.rows.push_back(of[i]);
  if (order.fastest) result.fastest = of[*order.fastest];
  if (order.recommended) result.recommended = of[*order.recommended];
  return result;
}

double parse_within(const std::string& text, const std::string& what) {
  std::string_view rest = text;
  const std::optional<double> percent = take_number<double>(rest);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (!percent || rest != "%" || !(*percent >= 0 && *percent <= 100)) {
    throw UsageError(
        fmt::format("{} is a share of the fastest's time, from 0% to 100% (it is \"{}\"); write it "
                    "like 1%",
                    what, text));
  }
  return *percent / 100;
}

}  // namespace stageline
