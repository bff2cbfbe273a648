// A comparison ranked by something else than its nominal speed: a quantile of the step under
// scenarios, joules, dollars.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/compare/uncertainty.hpp"

namespace stageline {

struct RankBy {
  enum class Measure : std::uint8_t { time, quantile, energy, cost };
  Measure measure = Measure::time;
  std::optional<double> share;  // of a quantile; empty: the mean

  friend bool operator==(const RankBy&, const RankBy&) = default;
};

/// "time", "energy", "cost", "mean", "p95"; an empty text is p95 where scenarios are asked for
/// (`uncertain`), else time. Throws UsageError, which begins with `what`, also for a quantile
/// without scenarios.
RankBy parse_rank_by(const std::string& text, const std::string& what, bool uncertain);
/// "p95", "the mean", "energy".
std::string name(const RankBy& by);

/// What a row is ranked by. Empty where the row has no outcome, or no such figure.
struct Measured {
  std::optional<double> value;  // for a sample: seconds, joules or dollars
  std::string words;            // for a step, or of a sweep for a million samples: "p95 20.70 s"
};

/// By row. `uncertain`: of the rows, where a quantile is asked for.
std::vector<Measured> measured_by(const RankBy& by, const std::vector<Row>& rows,
                                  const std::vector<Uncertainty>& uncertain);

/// As ranked(), least first. Rows that do not fit come last, and before them those without a value.
/// `fastest` and `recommended` are the first. The sentence names the runner-up, and of scenarios
/// how often the first is the best.
RankedRows ranked_by(const std::vector<Row>& rows, Synchrony synchrony,
                     const std::vector<Measured>& measured,
                     const std::vector<Uncertainty>& uncertain);

/// The rows with steps that fit: set_best() takes them as rivals.
std::vector<std::size_t> rivals_of(const std::vector<Row>& rows, Synchrony synchrony,
                                   const std::vector<Uncertainty>& uncertain);

}  // namespace stageline
