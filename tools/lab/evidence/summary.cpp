// Summarizes many cases: means, the worst errors, and their ranking.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/analysis/statistics.hpp"
#include "tools/lab/evidence/judge.hpp"

namespace stageline::lab {
namespace {

// The key of cases that may be ranked against one another.
auto same_work(const MeasuredCase& measured) {
  return std::tie(measured.model, measured.batch, measured.microbatches, measured.steps,
                  measured.link, measured.host_link);
}

// Few runs agree by chance now and then: a case is no quieter than the machine.
Time noise_at_least(const CaseJudgement& judged, double mean_noise) {
  const double usual = mean_noise * static_cast<double>(judged.measured.count());
  return std::max(*judged.noise, Time{std::llround(usual)});
}

Ranking ranking_of(const Evidence& evidence, const std::vector<CaseJudgement>& cases,
                   const std::vector<std::size_t>& of, double mean_noise) {
  Ranking ranking;
  for (std::size_t i = 0; i < of.size(); ++i) {
    for (std::size_t j = i + 1; j < of.size(); ++j) {
      if (same_work(evidence.cases[of[i]]) != same_work(evidence.cases[of[j]])) continue;
      // Two names of one program.
      if (cases[of[i]].prediction.timeline == cases[of[j]].prediction.timeline) continue;
      ++ranking.pairs;
      CasePair pair{of[i], of[j]};
      if (cases[pair.slower].measured < cases[pair.faster].measured) {
        std::swap(pair.faster, pair.slower);
      }
      const CaseJudgement& faster = cases[pair.faster];
      const CaseJudgement& slower = cases[pair.slower];
      const Time difference = slower.measured - faster.measured;
      if (!faster.noise || !slower.noise) continue;
      const Time noise = noise_at_least(faster, mean_noise) + noise_at_least(slower, mean_noise);
      if (difference <= noise) continue;
      ++ranking.decidable;
      if (faster.prediction.makespan < slower.prediction.makespan) continue;
      const bool tied = faster.prediction.makespan == slower.prediction.makespan;
      ++(tied ? ranking.tied : ranking.discordant);
      const double share = fraction_of(difference, faster.measured);
      if (ranking.worst && share <= ranking.worst_difference) continue;
      ranking.worst = pair;
      ranking.worst_difference = share;
    }
  }
  if (ranking.decidable > 0) {
    const int in_order = ranking.decidable - ranking.discordant - ranking.tied;
    ranking.tau = static_cast<double>(in_order - ranking.discordant) / ranking.decidable;
  }
  return ranking;
}

// The statistics of one figure.
struct Gathered {
  double mean = 0;  // of absolute values
  double bias = 0;
  double median = 0;
  Worst worst;
  int count = 0;
};

// `value` gives the figure of a case, or is empty.
template <class Value>
Gathered gather(const std::vector<CaseJudgement>& cases, const std::vector<std::size_t>& of,
                Value value) {
  Gathered all;
  std::vector<double> sizes;
  for (const std::size_t at : of) {
    const std::optional<double> one = value(cases[at]);
    if (!one) continue;
    if (sizes.empty() || std::abs(*one) > std::abs(all.worst.value)) all.worst = {*one, at};
    sizes.push_back(std::abs(*one));
    all.mean += std::abs(*one);
    all.bias += *one;
  }
  if (sizes.empty()) return all;
  const auto count = static_cast<double>(sizes.size());
  all.count = static_cast<int>(sizes.size());
  all.mean /= count;
  all.bias /= count;
  std::sort(sizes.begin(), sizes.end());
  all.median = (sizes[(sizes.size() - 1) / 2] + sizes[sizes.size() / 2]) / 2;
  return all;
}

}  // namespace

Summary summary_of(const Evidence& evidence, const std::vector<CaseJudgement>& cases,
                   std::vector<std::size_t> of) {
  using Figure = std::optional<double>;
  Summary summary;
  const Gathered error =
      gather(cases, of, [](const CaseJudgement& one) { return Figure(one.error); });
  summary.mean_error = error.mean;
  summary.median_error = error.median;
  summary.bias = error.bias;
  summary.worst_error = error.worst;
  const Gathered beyond =
      gather(cases, of, [](const CaseJudgement& one) { return Figure(beyond_noise(one)); });
  summary.mean_beyond_noise = beyond.mean;
  summary.worst_beyond_noise = beyond.worst;
  const Gathered idle =
      gather(cases, of, [](const CaseJudgement& one) { return Figure(one.idle_error); });
  summary.mean_idle_error = idle.mean;
  summary.worst_idle_error = idle.worst;
  const Gathered idle_noise =
      gather(cases, of, [](const CaseJudgement& one) { return one.idle_noise; });
  summary.mean_idle_noise = idle_noise.mean;
  for (const std::size_t at : of) {
    const double beyond = std::abs(cases[at].idle_error) - cases[at].idle_noise.value_or(0);
    summary.worst_idle_beyond_noise = std::max(summary.worst_idle_beyond_noise, beyond);
  }
  summary.worst_transfer_error =
      gather(cases, of, [](const CaseJudgement& one) { return Figure(one.transfer_error); }).worst;
  const Gathered peak = gather(cases, of, [](const CaseJudgement& one) { return one.peak_error; });
  summary.memory_cases = peak.count;
  summary.worst_peak_error = peak.worst;
  const auto beyond_runs = [](const CaseJudgement& one) { return one.peak_beyond_runs; };
  summary.worst_peak_beyond_runs = gather(cases, of, beyond_runs).worst;
  for (const std::size_t at : of) {
    const std::optional<double> one = cases[at].peak_beyond_runs;
    summary.peaks_within_aim += one && std::abs(*one) <= aim_peak_error ? 1 : 0;
  }
  summary.worst_stash_error =
      gather(cases, of, [](const CaseJudgement& one) {
        return one.stash_error ? Figure(static_cast<double>(one.stash_error->count)) : Figure();
      }).worst;
  for (const std::size_t at : of) summary.stash_exact += cases[at].stash_error == Bytes{} ? 1 : 0;
  const auto counted_peak = [](const CaseJudgement& one) { return one.counted_peak_error; };
  summary.worst_counted_peak_error = gather(cases, of, counted_peak).worst;
  for (const std::size_t at : of) {
    const std::optional<double> one = cases[at].counted_peak_error;
    summary.counted_peaks_within_aim += one && std::abs(*one) <= aim_peak_error ? 1 : 0;
    summary.counted_stash_exact += cases[at].counted_stash_error == Bytes{} ? 1 : 0;
    summary.clocks_kept += evidence.cases[at].counted ? 1 : 0;
  }
  const Gathered noise = gather(cases, of, [](const CaseJudgement& one) {
    return one.noise ? Figure(fraction_of(*one.noise, one.measured)) : Figure();
  });
  summary.noise_cases = noise.count;
  summary.mean_noise = noise.mean;
  summary.worst_noise = noise.worst;
  summary.ranking = ranking_of(evidence, cases, of, summary.mean_noise);
  summary.cases = std::move(of);
  return summary;
}

}  // namespace stageline::lab
