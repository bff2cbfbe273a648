#include "tools/planner/words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "sim/base/index.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/study/figures/ranking.hpp"

namespace stageline::planner {
namespace {

// What the objective wants least of, of a point.
double amount(const PlanPoint& point, Objective objective) {
  switch (objective) {
    case Objective::time:
      return static_cast<double>(point.verdict.step.count());
    case Objective::memory:
      return static_cast<double>(point.verdict.fullest().count);
    case Objective::devices:
      return point.devices();
    case Objective::cost:
      return point.dollars_step.value_or(to_seconds(point.verdict.step) * point.devices());
  }
  return 0;  // unreachable; g++ wants it
}

std::string_view superlative(Objective objective) {
  switch (objective) {
    case Objective::time:
      return "the fastest";
    case Objective::memory:
      return "the least memory";
    case Objective::devices:
      return "the fewest devices";
    case Objective::cost:
      return "the cheapest";
  }
  return "";  // unreachable; g++ wants it
}

// What the recommended point has, by how far it is from the least of what the objective wants.
std::string merit(Objective objective, double distance, double within) {
  if (distance <= 0) return std::string(superlative(objective));
  switch (objective) {
    case Objective::memory:
      return fmt::format("the fastest within {:g} % of the least memory", within * 100);
    case Objective::time:
      if (distance <= same_time) return "as fast as any";
      break;
    case Objective::cost:
      if (distance <= same_time) return "as cheap as any";
      break;
    case Objective::devices:
      break;  // no point with more is recommended
  }
  return fmt::format("the least memory within {:g} % of {}", within * 100, superlative(objective));
}

std::string figures(const PlanPoint& point) {
  std::string text = print(point.verdict.step);
  if (point.verdict.fullest() > Bytes{}) text += ", " + print(point.verdict.fullest());
  return text;
}

std::string more_or_less(Time than, Time here) {
  const double ratio = to_seconds(here) / to_seconds(than);
  if (ratio < 1) return fmt::format("{:.1f} % faster", (1 / ratio - 1) * 100);
  return fmt::format("{:.1f} % slower", (ratio - 1) * 100);
}

}  // namespace

std::string schedule_words(const Candidate& candidate) {
  const bool alone = candidate.shape.degrees.pipeline == 1;
  const std::string schedule = title(candidate.spec);
  return alone && schedule == "1f1b" ? "no pipeline" : schedule;
}

std::string named(const PlanPoint& point) {
  const Candidate& candidate = point.candidate;
  std::string text = schedule_words(candidate);
  const std::string degrees = print(candidate.shape.degrees);
  if (!degrees.empty()) text += ", " + degrees;
  if (const std::string& by = candidate.shape.cp_comm_type; !by.empty()) text += ", cp by " + by;
  const std::string& placement = candidate.shape.placement;
  if (!placement.empty()) text += ", placement " + placement;
  const std::string zero = zero_words(candidate.shape.degrees);
  if (!zero.empty()) text += " with " + zero;
  text += fmt::format(", {} micro-batch{}", candidate.shape.microbatches,
                      candidate.shape.microbatches == 1 ? "" : "es");
  if (candidate.shape.microbatch_size > 0) {
    text += fmt::format(" of {}", candidate.shape.microbatch_size);
  }
  if (const std::string again = print(candidate.recomputation); !again.empty() && again != "none") {
    text += fmt::format(", recomputing {}", again);
  }
  if (const std::string copied = print(candidate.offloading); copied != "none") {
    text += fmt::format(", offloading {}", copied);
  }
  return text;
}

Recommendation recommend(const std::vector<PlanPoint>& front, Objective objective, double within,
                         const std::optional<Tie>& tie) {
  if (front.empty()) return {};
  const auto less = [](double a, double b) { return a < b; };
  double best = amount(front.front(), objective);
  for (const PlanPoint& point : front) best = std::min(best, amount(point, objective), less);
  // The least memory among those that are nearly as good, or where memory is the objective the
  // fastest.
  const auto better = [&](const PlanPoint& a, const PlanPoint& b) {
    const auto key = [&](const PlanPoint& point) {
      const auto memory = point.verdict.fullest();
      const auto time = point.verdict.step;
      return objective == Objective::time || objective == Objective::cost
                 ? std::pair(memory.count, std::int64_t{time.count()})
                 : std::pair(std::int64_t{time.count()}, memory.count);
    };
    if (key(a).first != key(b).first) return key(a).first < key(b).first;
    if (a.devices() != b.devices()) return a.devices() < b.devices();
    if (key(a).second != key(b).second) return key(a).second < key(b).second;
    return a.flags < b.flags;
  };
  std::optional<std::size_t> taken;
  for (std::size_t i = 0; i < front.size(); ++i) {
    const double share = objective == Objective::devices ? 0 : within;
    if (amount(front[i], objective) > best * (1 + share)) continue;
    if (!taken || better(front[i], front[*taken])) taken = i;
  }
  if (tie) taken = tie->taken;
  const PlanPoint& point = front[*taken];
  Recommendation recommendation{taken, {}};
  const double distance = best > 0 ? amount(point, objective) / best - 1 : 0;
  const bool for_memory = tie && distance > same_time;
  recommendation.sentence =
      fmt::format("{}: {}, {}", named(point), figures(point),
                  for_memory ? fmt::format("the least time × memory of {} that tie", tie->rows)
                             : merit(objective, distance, within));
  // A step up is the next faster one; at the top, the next slower one that saves memory.
  const auto beside = [&](const PlanPoint& other) {
    const bool alike = named(other) == named(point);
    return fmt::format(
        "{}: {}{} ({})", more_or_less(point.verdict.step, other.verdict.step), named(other),
        alike ? fmt::format(", cut {}", other.candidate.partition) : "", figures(other));
  };
  // Times that are called the same are no step.
  const auto is_step = [&](const PlanPoint& fast, const PlanPoint& slow) {
    return to_seconds(fast.verdict.step) * (1 + same_time) < to_seconds(slow.verdict.step);
  };
  if (for_memory) {
    recommendation.sentence +=
        fmt::format("; the fastest, by less than can be told, {}", beside(front.front()));
    return recommendation;
  }
  for (std::size_t next = *taken; next-- > 0;) {
    if (!is_step(front[next], point)) continue;
    recommendation.sentence += "; " + beside(front[next]);
    return recommendation;
  }
  for (std::size_t next = *taken + 1; next < front.size(); ++next) {
    if (!is_step(point, front[next])) continue;
    if (front[next].verdict.fullest() >= point.verdict.fullest()) continue;
    recommendation.sentence += "; with less memory, " + beside(front[next]);
    return recommendation;
  }
  return recommendation;
}

}  // namespace stageline::planner
