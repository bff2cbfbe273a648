// Runs the cases of a comparison and ranks them.
#include "tools/compare/comparison.hpp"

#include <fmt/core.h>

#include "sim/errors.hpp"
#include "sim/numbers.hpp"

namespace stageline {

Synchrony block_of(const Row& row) {
  return row.outcome ? row.outcome->synchrony : row.asked.spec.scheduler->synchrony;
}

std::vector<Row> compare(const SettingRequest& request, const Setting& setting,
                         const std::vector<ScheduleSpec>& schedules) {
  std::vector<Row> rows;
  std::string first_error;
  bool any = false;
  for (const int devices : setting.device_counts) {
    for (const ScheduleSpec& spec : schedules) {
      Row row{make_case(request, setting, spec, devices), spelled(spec), std::nullopt, ""};
      try {
        row.outcome = study(row.asked);
        row.outcome->graph = {};
        row.outcome->times = {};
        any = true;
      } catch (const UsageError& error) {
        row.why_not = error.what();
      } catch (const ProgramError& error) {
        row.why_not = fmt::format("{}: {}", row.schedule, error.what());
      } catch (const Deadlock& error) {
        row.why_not = error.what();
      }
      if (first_error.empty()) first_error = row.why_not;
      rows.push_back(std::move(row));
    }
  }
  if (!any) throw UsageError(first_error);
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
