#include "tools/compare/uncertainty.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/deadlock.hpp"

namespace stageline {
namespace {

Uncertainty under_scenarios(const Row& row, const ScenarioRequest& scenarios) {
  Uncertainty one;
  if (!row.outcome) return one;
  if (scenarios.stop != nullptr && scenarios.stop->load()) {
    one.why_not = "interrupted";
    return one;
  }
  try {
    one.steps = scenario_steps(row.asked, *row.outcome, scenarios);
    if (one.steps->step.empty()) {
      one.steps.reset();
      one.why_not = "interrupted";
    }
  } catch (const UsageError& error) {
    one.why_not = error.what();
  } catch (const ProgramError& error) {
    one.why_not = fmt::format("{}: {}", row.schedule, error.what());
  } catch (const Deadlock& error) {
    one.why_not = error.what();
  }
  return one;
}

}  // namespace

double loss_of(const ScenarioSteps& steps, const Distribution& distribution) {
  if (steps.nominal == Time{}) return 0;
  return to_seconds(distribution.mean) / to_seconds(steps.nominal) - 1;
}

double UncertainRow::loss() const { return steps ? loss_of(*steps, distribution) : 0; }

std::vector<Uncertainty> uncertainty_of(const std::vector<Row>& rows,
                                        const ScenarioRequest& scenarios) {
  std::vector<Uncertainty> all;
  std::size_t known = std::numeric_limits<std::size_t>::max();
  std::string refusal;
  for (const Row& row : rows) {
    all.push_back(under_scenarios(row, scenarios));
    if (all.back().steps) known = std::min(known, all.back().steps->step.size());
    if (refusal.empty()) refusal = all.back().why_not;
  }
  const bool stopped = scenarios.stop != nullptr && scenarios.stop->load();
  if (known == std::numeric_limits<std::size_t>::max()) {
    if (!stopped) throw UsageError(refusal);
    return all;
  }
  for (Uncertainty& one : all) {
    if (!one.steps) continue;
    one.steps->step.resize(known);
    one.distribution = distribution_of(one.steps->step);
  }
  return all;
}

void set_best(const std::vector<Row>& rows, const std::vector<std::size_t>& rivals,
              std::vector<Uncertainty>& uncertain) {
  std::vector<std::vector<Time>> steps;
  std::vector<double> samples;
  for (const std::size_t i : rivals) {
    steps.push_back(uncertain[i].steps->step);
    samples.push_back(rows[i].outcome->samples());
  }
  const std::vector<double> best = shares_of_best(steps, samples);
  for (std::size_t k = 0; k < rivals.size(); ++k) uncertain[rivals[k]].best = best[k];
}

Time at_quantile(const Uncertainty& row, std::optional<double> share) {
  if (!share) return row.distribution.mean;
  std::vector<Time> sorted = row.steps->step;
  std::sort(sorted.begin(), sorted.end());
  return quantile(sorted, *share);
}

std::vector<UncertainRow> under_uncertainty(const SettingRequest& request, const Setting& setting,
                                            const std::vector<ScheduleSpec>& schedules,
                                            const ScenarioRequest& scenarios) {
  std::vector<Row> rows = compare(request, setting, schedules, scenarios.threads);
  std::vector<Uncertainty> uncertain = uncertainty_of(rows, scenarios);
  std::vector<std::size_t> rivals;
  std::vector<std::size_t> that_fit;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!uncertain[i].steps) continue;
    rivals.push_back(i);
    if (rows[i].outcome->fit != Fit::no) that_fit.push_back(i);
  }
  if (!that_fit.empty()) rivals = std::move(that_fit);
  set_best(rows, rivals, uncertain);
  std::vector<UncertainRow> result;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    UncertainRow one{std::move(rows[i]), std::move(uncertain[i].steps), uncertain[i].distribution,
                     uncertain[i].best};
    if (one.row.outcome) one.row.schedule = one.row.outcome->schedule;
    if (!one.steps) one.row.outcome.reset();
    if (!uncertain[i].why_not.empty()) one.row.why_not = uncertain[i].why_not;
    result.push_back(std::move(one));
  }
  return result;
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
    value[i] = to_seconds(time) / rows[i].row.outcome->samples();
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool fits = rows[a].fits();
    return fits != rows[b].fits() ? fits : value[a] < value[b];
  });
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

std::string frozen_note(const std::string& schedule, const ScenarioSteps& steps) {
  return fmt::format(
      "{}: shared links serve transfers in the nominal order (--freeze), which is {:.2f} % off "
      "on average in the first scenarios",
      schedule, steps.frozen_error * 100);
}

std::string other_step_note(const std::string& schedule, const ScenarioSteps& steps, Time step) {
  if (std::abs(to_seconds(steps.nominal) - to_seconds(step)) <= 0.01 * to_seconds(step)) return "";
  return fmt::format(
      "{}: no stretch of its run takes as long as its step, {}: the scenarios are of one that takes "
      "{} undisturbed",
      schedule, print(step), print(steps.nominal));
}

std::string interrupted_note(const ScenarioSteps& steps, std::int64_t asked) {
  return fmt::format("interrupted: only the first {} of {} scenarios", steps.step.size(), asked);
}

}  // namespace stageline
