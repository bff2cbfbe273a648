// Writes tokens/s, MFU and the price of a training.
#include "tools/report/text/training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/base/amounts.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/study/evidence/evidence.hpp"

namespace stageline::report {
namespace {

// "1,024".
std::string with_commas(int count) {
  std::string text = fmt::format("{}", count);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(as_size(at), ",");
  return text;
}

std::string flops_text(double flops) {
  if (flops >= 1e12) return fmt::format("{:.1f} TFLOP/s", flops / 1e12);
  return flops >= 1e9 ? fmt::format("{:.1f} GFLOP/s", flops / 1e9)
                      : fmt::format("{:.4g} FLOP/s", flops);
}

std::string line(std::string_view name, const std::vector<std::string>& parts) {
  if (parts.empty()) return "";
  return fmt::format("{:<13}  {}\n", name, fmt::join(parts, " · "));
}

// A rate with its range, which is the step's the other way round.
std::string ranged(const std::string& rate, const std::optional<Interval>& step) {
  if (!step || step->low <= 0) return rate;
  return fmt::format("{} ({})", rate, range_of(rate, 1 / step->high, 1 / step->low));
}

std::string tokens_line(const Outcome& outcome, const TrainingRates& rates,
                        const std::optional<Interval>& interval) {
  if (!rates.tokens_per_second) return "";
  const double step = *rates.tokens_per_second * to_seconds(outcome.step_time);
  return line("tokens", {ranged(count_text(*rates.tokens_per_second) + "/s", interval),
                         ranged(count_text(*rates.tokens_per_device_second) + "/s a GPU", interval),
                         count_text(step) + " a step"});
}

std::string flops_line(const TrainingRates& rates, const std::optional<Interval>& interval) {
  std::vector<std::string> parts;
  if (rates.flops_per_device_second) {
    parts.push_back(flops_text(*rates.flops_per_device_second) + " a GPU");
  }
  if (rates.mfu) {
    parts.push_back("MFU " + ranged(percent(*rates.mfu), interval));
    parts.push_back(fmt::format("HFU {} of {}", percent(*rates.hfu),
                                flops_text(*rates.flops_per_device_second / *rates.mfu)));
  }
  return line("FLOPs", parts);
}

std::string communication_line(const Outcome& outcome, const TrainingRates& rates) {
  std::vector<std::string> groups;
  for (std::size_t g = 0; g < rates.blocking.size(); ++g) {
    if (rates.blocking[g] <= 0) continue;
    groups.push_back(fmt::format("{} {}", name(all_dimensions[g]), percent(rates.blocking[g])));
  }
  std::vector<std::string> parts;
  if (!groups.empty()) {
    const auto& devices = outcome.metrics.device;
    const auto busiest = std::max_element(
        devices.begin(), devices.end(),
        [](const DeviceMetrics& a, const DeviceMetrics& b) { return a.busy < b.busy; });
    parts.push_back(fmt::format("blocking: {} of a step on {}", fmt::join(groups, ", "),
                                nth(outcome.program.devices, busiest - devices.begin())));
  }
  parts.push_back(fmt::format("idle for messages {}, for reductions {}",
                              percent(rates.idle_for_messages),
                              percent(rates.idle_for_reductions)));
  parts.push_back(fmt::format("exposed {}", percent(rates.exposed)));
  return line("communication", parts);
}

// "at $2.50 an hour and GPU".
std::string price_words(const TrainingRates& rates) {
  return fmt::format("{} at ${:.2f} an hour and GPU", dollars_text(*rates.dollars),
                     *rates.dollars / *rates.device_hours);
}

std::string budget_line(const Case& asked, const TrainingRates& rates,
                        const TrainingBudget& budget) {
  if (!rates.device_hours) return "";
  const int devices = asked.device_count();
  return line("training",
              {fmt::format("{} tokens: {} GPU-hours, {} on {} GPU{}", count_text(budget.tokens),
                           count_text(*rates.device_hours), days_text(*rates.days),
                           with_commas(devices), devices == 1 ? "" : "s"),
               rates.dollars ? price_words(rates) : "cost unknown: give --price"});
}

}  // namespace

std::string days_text(double days) {
  const double hours = days * 24;
  if (hours < 2.0 / 60) return fmt::format("{:.3g} seconds", hours * 3600);
  if (hours < 2) return fmt::format("{:.1f} minutes", hours * 60);
  if (days < 2) return fmt::format("{:.1f} hours", hours);
  return days < 730 ? fmt::format("{:.1f} days", days) : fmt::format("{:.1f} years", days / 365.25);
}

std::string training_lines(const Case& asked, const Outcome& outcome, const TrainingRates& rates,
                           const TrainingBudget& budget) {
  if (!rates.tokens_per_second && !rates.model_flops) return "";
  const std::optional<Interval> interval = intervals_of(asked.model, asked.ranked.get()).step;
  return tokens_line(outcome, rates, interval) + flops_line(rates, interval) +
         communication_line(outcome, rates) + budget_line(asked, rates, budget);
}

std::string energy_line(const Case& asked, const StepEnergy& energy) {
  if (!energy.joules && !energy.dollars) return "";
  const auto figures = [&](double times) {
    std::vector<std::string> parts;
    if (energy.joules) parts.push_back(joules_text(*energy.joules * times));
    if (energy.dollars) parts.push_back(dollars_text(*energy.dollars * times));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  std::vector<std::string> parts{figures(1) + " a step"};
  if (energy.tokens > 0) {
    parts.push_back(figures(1e9 / energy.tokens) + " for a billion tokens");
  } else if (energy.samples > 0) {
    const std::string sample = asked.model.sample.empty() ? "sample" : asked.model.sample;
    parts.push_back(fmt::format("{} for a million {}s", figures(1e6 / energy.samples), sample));
  }
  return line(energy.joules ? "energy" : "cost", parts);
}

std::string rates_words(const TrainingRates& rates) {
  std::vector<std::string> parts;
  if (rates.tokens_per_device_second) {
    parts.push_back(count_text(*rates.tokens_per_device_second) + " tokens/s a GPU");
  }
  if (rates.mfu) parts.push_back("MFU " + percent(*rates.mfu));
  return fmt::format("{}", fmt::join(parts, " · "));
}

}  // namespace stageline::report
