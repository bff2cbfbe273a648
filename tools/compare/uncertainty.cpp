#include "tools/compare/uncertainty.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/errors.hpp"
#include "sim/numbers.hpp"

namespace stageline {
namespace {

double samples_of(const Outcome& outcome) {
  return static_cast<double>(outcome.microbatches) * outcome.copies *
         std::max(outcome.microbatch_size, 1);
}

}  // namespace

double UncertainRow::loss() const {
  if (!steps || steps->nominal == Time{}) return 0;
  return to_seconds(distribution.mean) / to_seconds(steps->nominal) - 1;
}

std::vector<UncertainRow> under_uncertainty(const SettingRequest& request, const Setting& setting,
                                            const std::vector<ScheduleSpec>& schedules,
                                            const ScenarioRequest& scenarios) {
  std::vector<UncertainRow> rows;
  std::string first_reason;
  const auto stopped = [&] { return scenarios.stop != nullptr && scenarios.stop->load(); };
  for (const ScheduleSpec& spec : schedules) {
    UncertainRow one;
    one.row.schedule = spelled(spec);
    if (stopped()) {
      one.row.why_not = "interrupted";
      rows.push_back(std::move(one));
      continue;
    }
    try {
      one.row.asked = make_case(request, setting, spec, setting.device_counts.front());
      one.row.outcome = study(one.row.asked, Curves::none);
      one.row.schedule = one.row.outcome->schedule;
      one.steps = scenario_steps(one.row.asked, *one.row.outcome, scenarios);
      if (one.steps->step.empty()) {
        one.steps.reset();
        one.row.why_not = "interrupted";
      }
    } catch (const UsageError& error) {
      one.row.why_not = error.what();
    } catch (const ProgramError& error) {
      one.row.why_not = fmt::format("{}: {}", one.row.schedule, error.what());
    } catch (const Deadlock& error) {
      one.row.why_not = error.what();
    }
    if (!one.steps) one.row.outcome.reset();
    if (first_reason.empty()) first_reason = one.row.why_not;
    rows.push_back(std::move(one));
  }
  const bool any = std::any_of(rows.begin(), rows.end(),
                               [](const UncertainRow& row) { return row.steps.has_value(); });
  if (!any && stopped()) return rows;
  if (!any) throw UsageError(first_reason);
  std::size_t known = std::numeric_limits<std::size_t>::max();
  for (const UncertainRow& row : rows) {
    if (row.steps) known = std::min(known, row.steps->step.size());
  }
  std::vector<std::vector<Time>> steps;
  std::vector<double> samples;
  for (UncertainRow& row : rows) {
    if (!row.steps) continue;
    row.steps->step.resize(known);
    row.distribution = distribution_of(row.steps->step);
    steps.push_back(row.steps->step);
    samples.push_back(samples_of(*row.row.outcome));
  }
  const std::vector<double> best = shares_of_best(steps, samples);
  std::size_t next = 0;
  for (UncertainRow& row : rows) {
    if (row.steps) row.best = best[next++];
  }
  return rows;
}

std::vector<std::size_t> ranked_by_quantile(const std::vector<UncertainRow>& rows,
                                            std::optional<double> share) {
  std::vector<std::size_t> order;
  std::vector<double> value(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].steps || rows[i].steps->step.empty()) continue;
    std::vector<Time> sorted = rows[i].steps->step;
    std::sort(sorted.begin(), sorted.end());
    const Time time = share ? quantile(sorted, *share) : rows[i].distribution.mean;
    value[i] = to_seconds(time) / samples_of(*rows[i].row.outcome);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return value[a] < value[b]; });
  return order;
}

std::optional<double> parse_quantile(const std::string& text, const std::string& what) {
  if (text == "mean") return std::nullopt;
  const auto number = text.starts_with('p') || text.starts_with('P')
                          ? parse_number<double>(text.substr(1))
                          : std::nullopt;
  if (!number || !(*number >= 0 && *number <= 100)) {
    throw UsageError(fmt::format(
        "{} is mean or a percentile from p0 to p100, such as p95, not \"{}\"", what, text));
  }
  return *number / 100;
}

UsefulShare useful_share(const Failures& failures) {
  const double m = failures.between;
  const double c = failures.checkpoint;
  UsefulShare result;
  result.young = std::sqrt(2 * c * m);
  // Daly 2006, equation 37.
  const double ratio = c / (2 * m);
  result.daly = c < 2 * m ? std::sqrt(2 * c * m) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - c : m;
  result.interval = failures.interval > 0 ? failures.interval : result.daly;
  const double lost = m * std::exp(failures.restart / m) * std::expm1((result.interval + c) / m);
  result.useful = result.interval / lost;
  return result;
}

}  // namespace stageline
