// Computes the figures of a judgement and compares them with the aims.
#include "tools/lab/evidence/aims.hpp"

#include <fmt/core.h>

#include <cmath>

#include "tools/base/table.hpp"

namespace stageline::lab {
namespace {

std::string at_most(double fraction) { return fmt::format("≤ {:.0f} %", 100 * fraction); }

// A figure with an upper bound on its magnitude, over `count` values.
Aim bounded(const std::string& figure, double is, double most, int count) {
  if (count == 0) return {figure, "–", at_most(most), std::nullopt};
  return {figure, signed_percent(is), at_most(most), std::abs(is) <= most};
}

Aim worst_of(const Evidence& evidence, const std::string& figure, const Worst& worst, double most,
             int count) {
  Aim aim = bounded(figure, worst.value, most, count);
  if (count > 0) aim.where = name_of(evidence.cases[worst.at]);
  return aim;
}

std::string count_of(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A mean of magnitudes: without a sign.
Aim mean_aim(const std::string& figure, double mean, double most, int count) {
  Aim aim = bounded(figure, mean, most, count);
  if (aim.met) aim.is = percent(mean);
  return aim;
}

// Both as they are and beyond the noise, which is what a prediction can be blamed for.
std::vector<Aim> time_aims(const Evidence& evidence, const Summary& held) {
  const int cases = static_cast<int>(held.cases.size());
  std::vector<Aim> aims{
      mean_aim("error of the time, mean of " + count_of(held.cases.size(), "case"), held.mean_error,
               aim_mean_error, cases),
      bounded("the same, signed mean", held.bias, aim_bias, cases),
      worst_of(evidence, "error of the time, worst", held.worst_error, aim_worst_error, cases),
      worst_of(evidence, "idle time of a device, worst", held.worst_idle_error, aim_idle_error,
               cases)};
  if (held.noise_cases == 0) return aims;
  aims.push_back(mean_aim("beyond the noise of each case: error of the time, mean",
                          held.mean_beyond_noise, aim_mean_error, cases));
  aims.push_back(worst_of(evidence, "beyond the noise: error of the time, worst",
                          held.worst_beyond_noise, aim_worst_error, cases));
  aims.push_back(mean_aim("beyond the noise: idle time of a device, worst",
                          held.worst_idle_beyond_noise, aim_idle_error, cases));
  return aims;
}

Aim ranking_aim(const Ranking& ranking) {
  Aim aim{"decidable pairs in the machine's order", "–", "all", std::nullopt};
  if (!ranking.tau) return aim;
  const int wrong = ranking.discordant + ranking.tied;
  aim.is = fmt::format("{} of {}", ranking.decidable - wrong, ranking.decidable);
  if (ranking.tied > 0) aim.is += fmt::format(", {} tied", ranking.tied);
  aim.is += fmt::format("; τ = {:.2f}", *ranking.tau);
  aim.met = wrong == 0;
  return aim;
}

Aim stash_aim(const std::string& figure, int exact, int cases) {
  if (cases == 0) return {figure, "–", "all", std::nullopt};
  return {figure, fmt::format("{} of {}", exact, cases), "all", exact == cases};
}

// As predicted before the run; and of the run that was counted with what met there, which is the
// account alone, whatever the times.
void add_memory_aims(const Evidence& evidence, const Summary& held, std::vector<Aim>& aims) {
  aims.push_back(
      stash_aim("stash exact to the byte on every device", held.stash_exact, held.memory_cases));
  if (held.worst_stash_error.value != 0) {
    aims.back().is += fmt::format(", worst {:+.0f} B", held.worst_stash_error.value);
  }
  aims.push_back(worst_of(evidence, "peak memory of a device, worst", held.worst_peak_error,
                          aim_peak_error, held.memory_cases));
  if (held.memory_cases == 0) return;
  aims.push_back(worst_of(evidence, "beyond the range of its runs: peak memory, worst",
                          held.worst_peak_beyond_runs, aim_peak_error, held.memory_cases));
  if (held.clocks_kept == 0) return;
  aims.push_back(stash_aim("on the clock of its counted run: stash exact", held.counted_stash_exact,
                           held.memory_cases));
  aims.push_back(worst_of(evidence,
                          "on the clock of its counted run: peak memory beyond its range, worst",
                          held.worst_counted_peak_error, aim_peak_error, held.memory_cases));
}

}  // namespace

std::string signed_percent(double fraction) {
  const std::string text = percent(fraction);
  return fraction > 0 && text != "0.0 %" ? "+" + text : text;
}

std::vector<Aim> aims_of(const Evidence& evidence, const EvidenceJudgement& judgement) {
  const Summary& held = judgement.held_out;
  const Summary& seen = judgement.calibrated;
  const int cases = static_cast<int>(held.cases.size());
  std::vector<Aim> aims = time_aims(evidence, held);
  aims.push_back(ranking_aim(held.ranking));
  add_memory_aims(evidence, held, aims);
  const auto add = [&](const std::string& figure, const std::string& is) {
    aims.push_back({figure, is, "", std::nullopt});
  };
  if (held.ranking.pairs > 0) {
    add("pairs that the machine decides",
        fmt::format("{} of {}", held.ranking.decidable, held.ranking.pairs));
  }
  if (cases > 0) {
    add("error of the time, median", percent(held.median_error));
    add("idle time of the worst device, mean", percent(held.mean_idle_error));
    if (held.noise_cases > 0) {
      add("noise of those idle times, mean", percent(held.mean_idle_noise));
    }
    add("messages of a device, worst", signed_percent(held.worst_transfer_error.value));
    aims.back().where = name_of(evidence.cases[held.worst_transfer_error.at]);
  }
  if (held.noise_cases > 0) {
    add("noise of the measured times, mean; worst",
        fmt::format("{}; {}", percent(held.mean_noise), percent(held.worst_noise.value)));
    aims.back().where = name_of(evidence.cases[held.worst_noise.at]);
  }
  if (held.memory_cases > 0) {
    add("cases whose peaks are within the aim, beyond the range of their runs",
        fmt::format("{} of {}", held.peaks_within_aim, held.memory_cases));
  }
  if (held.clocks_kept > 0) {
    add("the same on the clock of their counted runs",
        fmt::format("{} of {}", held.counted_peaks_within_aim, held.memory_cases));
  }
  if (!seen.cases.empty()) {
    add("for comparison: error of the " + count_of(seen.cases.size(), "case") +
            " calibrated on, mean; worst",
        fmt::format("{}; {}", percent(seen.mean_error), signed_percent(seen.worst_error.value)));
  }
  return aims;
}

std::string worst_pair_text(const Evidence& evidence, const EvidenceJudgement& judgement) {
  const Ranking& ranking = judgement.held_out.ranking;
  if (!ranking.worst) return "";
  const auto one = [&](std::size_t at) {
    const CaseJudgement& judged = judgement.cases[at];
    return fmt::format("{} ({} measured, {} predicted)", name_of(evidence.cases[at]),
                       print(judged.measured), print(judged.prediction.makespan));
  };
  return fmt::format("The clearest pair that is not in order: {} is faster than {}.",
                     one(ranking.worst->faster), one(ranking.worst->slower));
}

}  // namespace stageline::lab
