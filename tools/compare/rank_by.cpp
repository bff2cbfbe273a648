// Ranks the rows of a comparison by a measure, and words the result.
#include "tools/compare/rank_by.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tools/base/amounts.hpp"
#include "tools/base/table.hpp"

namespace stageline {
namespace {

constexpr double million = 1e6;

bool is_sweep(const std::vector<Row>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
    return row.asked.device_count() != rows.front().asked.device_count();
  });
}

Measured in_words(double step, double samples, bool sweep, std::string (*text)(double)) {
  if (!(samples > 0)) return {step, text(step)};
  const double value = step / samples;
  return {value, sweep ? text(value * million) + " a million samples" : text(step)};
}

// The time of a million samples may be longer than a Time.
std::string time_text(double seconds) {
  constexpr double longest = 1e5;
  return seconds < longest ? print(from_seconds(seconds)) : fmt::format("{:.1f} s", seconds);
}

}  // namespace

RankBy parse_rank_by(const std::string& text, const std::string& what, bool uncertain) {
  using Measure = RankBy::Measure;
  if (text.empty()) {
    return uncertain ? RankBy{Measure::quantile, 0.95} : RankBy{Measure::time, std::nullopt};
  }
  for (const auto& [name, measure] :
       {std::pair{"time", Measure::time}, {"energy", Measure::energy}, {"cost", Measure::cost}}) {
    if (text == name) return {measure, std::nullopt};
  }
  const bool quantile = text == "mean" || text.starts_with('p') || text.starts_with('P');
  if (!quantile) {
    throw UsageError(fmt::format(
        "{} is time, energy or cost, and with --jitter also mean or a percentile such as p95, not "
        "\"{}\"",
        what, text));
  }
  const std::optional<double> share = parse_quantile(text, what);
  if (!uncertain) {
    throw UsageError(fmt::format(
        "{} {} has nothing to apply to, since nothing is uncertain; give --jitter 5%, --sometimes-slow, "
        "--pause or --perturb",
        what, text));
  }
  return {Measure::quantile, share};
}

std::string name(const RankBy& by) {
  switch (by.measure) {
    case RankBy::Measure::time:
      return "time";
    case RankBy::Measure::quantile:
      return by.share ? fmt::format("p{:g}", *by.share * 100) : "the mean";
    case RankBy::Measure::energy:
      return "energy";
    case RankBy::Measure::cost:
      return "cost";
  }
  return "";  // unreachable; g++ wants it
}

std::vector<Measured> measured_by(const RankBy& by, const std::vector<Row>& rows,
                                  const std::vector<Uncertainty>& uncertain) {
  const bool sweep = is_sweep(rows);
  std::vector<Measured> all(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].outcome) continue;
    const Outcome& outcome = *rows[i].outcome;
    const double samples = outcome.samples();
    switch (by.measure) {
      case RankBy::Measure::time:
        all[i] = in_words(to_seconds(outcome.step_time), samples, sweep, time_text);
        break;
      case RankBy::Measure::quantile:
        if (i < uncertain.size() && uncertain[i].steps) {
          all[i] =
              in_words(to_seconds(at_quantile(uncertain[i], by.share)), samples, sweep, time_text);
          all[i].words = fmt::format("{} {}", by.share ? name(by) : "mean", all[i].words);
        }
        break;
      case RankBy::Measure::energy:
        if (const auto& joules = rows[i].figures.energy.joules) {
          all[i] = in_words(*joules, samples, sweep, joules_text);
        }
        break;
      case RankBy::Measure::cost:
        if (const auto& dollars = rows[i].figures.energy.dollars) {
          all[i] = in_words(*dollars, samples, sweep, dollars_text);
        }
        break;
    }
  }
  return all;
}

RankedRows ranked_by(const std::vector<Row>& rows, Synchrony synchrony,
                     const std::vector<Measured>& measured,
                     const std::vector<Uncertainty>& uncertain) {
  RankedRows result = ranked(rows, synchrony);
  const auto fits = [&](std::size_t i) { return rows[i].outcome->fit != Fit::no; };
  std::stable_sort(result.rows.begin(), result.rows.end(), [&](std::size_t a, std::size_t b) {
    if (fits(a) != fits(b)) return fits(a);
    const auto& x = measured[a].value;
    const auto& y = measured[b].value;
    if (x.has_value() != y.has_value()) return x.has_value();
    return x.has_value() && *x < *y;
  });
  if (!result.fastest) return result;  // none fits, as the sentence says
  const std::size_t first = result.rows.front();
  result.fastest.reset();
  result.recommended.reset();
  result.sentence.clear();
  if (!measured[first].value) return result;
  result.fastest = result.recommended = first;
  const bool sweep = is_sweep(rows);
  const auto named = [&](std::size_t i) {
    return sweep ? fmt::format("{} on {} devices", rows[i].outcome->schedule,
                               rows[i].asked.device_count())
                 : rows[i].outcome->schedule;
  };
  result.sentence = fmt::format("{}: {}", named(first), measured[first].words);
  if (result.rows.size() > 1) {
    const std::size_t next = result.rows[1];
    if (fits(next) && measured[next].value && *measured[next].value > 0) {
      const double less = 1 - *measured[first].value / *measured[next].value;
      result.sentence += less < same_time ? fmt::format("; as much as {}", named(next))
                                          : fmt::format("; {} less than {} ({})", percent(less),
                                                        named(next), measured[next].words);
    }
  }
  if (first < uncertain.size() && uncertain[first].steps && result.rows.size() > 1) {
    result.sentence +=
        fmt::format("; the fastest in {} of {} scenarios", percent(uncertain[first].best),
                    uncertain[first].steps->step.size());
    std::size_t most = first;
    for (const std::size_t i : result.rows) {
      if (uncertain[i].best > uncertain[most].best) most = i;
    }
    if (most != first) {
      result.sentence += fmt::format(", {} in {}", named(most), percent(uncertain[most].best));
    }
  }
  return result;
}

std::vector<std::size_t> rivals_of(const std::vector<Row>& rows, Synchrony synchrony,
                                   const std::vector<Uncertainty>& uncertain) {
  std::vector<std::size_t> rivals;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& outcome = rows[i].outcome;
    if (!outcome || outcome->synchrony != synchrony || outcome->fit == Fit::no) continue;
    if (uncertain[i].steps) rivals.push_back(i);
  }
  return rivals;
}

}  // namespace stageline
