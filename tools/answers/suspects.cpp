// Simulates the run with each ailment, and ranks those that come near the measured step.
//
// A run of thousands of devices is simulated with fewer replicas, and only the likeliest ailments
// with all of them: what an ailment adds to a step hardly depends on the number of replicas.
#include "tools/answers/suspects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/answers/ailments.hpp"
#include "tools/base/parallel.hpp"
#include "tools/base/text.hpp"
#include "tools/inputs/setting_alike.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/study/figures/reported_memory.hpp"
#include "tools/study/study.hpp"

namespace stageline::answers {
namespace {

constexpr std::size_t most_suspects = 3;
constexpr double smallest_effect = 0.02;  // of the step: an ailment below it explains nothing
constexpr double near_enough = 0.01;      // of the measured step, to end the search of a strength
constexpr int most_refinements = 3;
constexpr std::size_t most_refined = 6;  // ailments whose strength is sought
// A smaller run has at least so many replicas, of which a ring sends 7/8 of what one of thousands
// does, and so many devices; the likeliest of its ailments are simulated with all replicas.
constexpr int enough_replicas = 8;
constexpr int enough_devices = 512;
constexpr std::size_t most_confirmed = 4;
// What is left unexplained weighs as much as one unit of surprise: assumed.
constexpr double usual_rest = 0.15;
// At its strongest an ailment is so much rarer than at its mildest: assumed.
constexpr double most_surprise_of_strength = 0.5;
// As Ailment::surprise, and more by the share of the step that they take: a loader that takes a
// tenth of a step is commoner than one that takes most of it. Assumed.
constexpr double surprise_of_pauses = 1.3;
constexpr double surprise_of_full_memory = 0.6;  // assumed

struct Tried {
  std::vector<std::pair<double, Time>> steps;  // by strength; those that cannot run are left out
  bool of_fewer = false;  // of a smaller run alone: the run that is explained cannot be asked so
};

// ---- what is simulated ----

// A run of fewer replicas.
struct SmallerRun {
  SettingRequest request;
  OpenedCase opened;
  Outcome outcome;
};

// Whether the ranks of both are the same devices with the same links, in the same degrees.
bool has_ranks_of(const SettingRequest& changed, const SettingRequest& run,
                  const Setting& setting) {
  // The trace decides how much slower each of several kinds of devices is.
  const bool one_kind = !setting.cluster.fixed || setting.cluster.fixed->kinds.size() < 2;
  return one_kind && changed.slow == run.slow && changed.degrees == run.degrees &&
         changed.buckets == run.buckets;
}

// `setting`: of `run`.
Case case_of(const SettingRequest& request, const SettingRequest& run, const Setting& setting) {
  SettingQuestion question;
  question.setting = request;
  if (!has_ranks_of(request, run, setting)) {
    return opened_case(question).asked;
  }
  const Setting alike = read_setting_alike(request, setting);
  return planner::searched_case(request, alike, schedules_of(question).front(),
                                alike.device_counts.front());
}

// With so many replicas; null where there can be no such run.
std::unique_ptr<SmallerRun> run_of_replicas(const ExplainQuestion& question, const Case& asked,
                                            int replicas) {
  SettingRequest request = question.setting;
  request.degrees = asked.ranked->grid().degrees();
  request.degrees.data = replicas;
  request.devices = {request.degrees.devices_of(request.degrees.pipeline)};
  request.whole_cluster = false;
  try {
    SettingQuestion smaller;
    smaller.setting = request;
    OpenedCase opened = opened_case(smaller);
    Outcome outcome = study(opened.asked, Curves::none);
    return std::make_unique<SmallerRun>(
        SmallerRun{std::move(request), std::move(opened), std::move(outcome)});
  } catch (const UsageError&) {
    return nullptr;
  }
}

// The run with the fewest replicas that are enough to tell what ailments do; null where the run is
// small itself, or its replicas differ.
std::unique_ptr<SmallerRun> smaller_run(const ExplainQuestion& question, const Explanation& found) {
  const Case& asked = found.asked;
  if (!asked.ranked || asked.pipelines() > 1) return nullptr;
  const int replicas = asked.ranked->grid().degrees().data;
  const int each = asked.device_count() / replicas;
  const int least = std::max(enough_replicas, (enough_devices + each - 1) / each);
  for (int fewer = least; 2 * fewer <= replicas; ++fewer) {
    if (replicas % fewer != 0) continue;
    std::unique_ptr<SmallerRun> smaller = run_of_replicas(question, asked, fewer);
    if (smaller) return smaller;
  }
  return nullptr;
}

// What ailments are simulated on: the run that is explained, or a smaller one.
struct Bench {
  PredictedRun run;
  const Setting& setting;  // of the run
  bool by_rate = false;    // steps are those of as many samples
  double scale = 1;        // steps of the explained run, of those here

  // A step of as many samples as the question's; empty where it cannot run so.
  std::optional<Time> step(const Ailment& ailment, double strength) const {
    SettingRequest changed = run.request;
    if (!ailment.apply(run, strength, changed)) return std::nullopt;
    try {
      const Outcome outcome = study(case_of(changed, run.request, setting), Curves::none);
      const double samples = by_rate ? run.outcome.samples() / outcome.samples() : 1;
      return from_seconds(to_seconds(outcome.step_time) * samples * scale);
    } catch (const UsageError&) {
      return std::nullopt;  // it says nothing of this run
    }
  }
};

// ---- how strong an ailment is ----

double distance(Time step, Time measured) {
  return std::abs(std::log(to_seconds(step) / to_seconds(measured)));
}

// The strength that was tried whose step is the nearest one.
std::pair<double, Time> nearest_step(const Tried& tried, Time measured) {
  return *std::min_element(tried.steps.begin(), tried.steps.end(),
                           [&](const auto& a, const auto& b) {
                             return distance(a.second, measured) < distance(b.second, measured);
                           });
}

// The strength at which the step is the measured one, between the two that it lies between, on
// logarithmic scales; the nearest where it lies outside.
double strength_for(const Tried& tried, Time predicted, Time measured) {
  double strength = 1;
  Time step = predicted;
  for (const auto& [next, longer] : tried.steps) {
    const double low = std::log(to_seconds(step));
    const double high = std::log(to_seconds(longer));
    const double at = std::log(to_seconds(measured));
    if ((at - low) * (at - high) <= 0 && high != low) {
      return strength * std::pow(next / strength, (at - low) / (high - low));
    }
    strength = next;
    step = longer;
  }
  return nearest_step(tried, measured).first;
}

double surprise_of_strength(const Ailment& ailment, double strength) {
  const double mildest = ailment.strengths.front();
  const double strongest = ailment.strengths.back();
  if (!(strongest > mildest) || !(strength > mildest)) return 0;
  return most_surprise_of_strength * std::log(strength / mildest) / std::log(strongest / mildest);
}

// As the command takes them: with the name of the device, and the links, that are slower, and the
// number of micro-batches.
std::string flags_of(const PredictedRun& run, const Ailment& ailment, double strength) {
  SettingRequest changed = run.request;
  const std::size_t before = changed.slow.size();
  ailment.apply(run, strength, changed);
  if (changed.slow.size() > before) {
    return "--slow " + shell_word(fmt::format("{}:{:.3g}", changed.slow.back().name, strength));
  }
  if (changed.microbatches != run.request.microbatches) {
    return fmt::format("--microbatches {}", changed.microbatches);
  }
  return with_strength(ailment.flags, strength);
}

// What torch's allocator reserves on the fullest device, as a share of its memory; 0: not known.
// Where that is all of it, the allocator gives memory back and asks the driver for it again.
double share_of_memory(const Explanation& found) {
  if (!found.outcome.bytes_known()) return 0;
  const std::size_t device = as_size(found.outcome.peak_device());
  const std::optional<Bytes>& limit = found.outcome.memory_limit[device];
  if (!limit || limit->count <= 0) return 0;
  const Bytes held = found.memory_measured.value_or(found.outcome.memory.device[device].peak);
  return reserved_share(found.asked).mean * static_cast<double>(held.count) /
         static_cast<double>(limit->count);
}

Suspect full_memory(double share, Time predicted, Time measured) {
  const Time outside = measured - predicted;
  return {
      "the allocator is at its limit",
      fmt::format("{} a step go to memory that is given back and asked for again, as {:.0f} % of "
                  "the device are reserved",
                  print(outside), 100 * share),
      "torch.cuda.memory_stats(): num_alloc_retries; "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
      "",
      measured,
      to_seconds(outside)};
}

// What no simulation has: it explains any step, and so says little.
Suspect time_outside(Time predicted, Time measured) {
  const Time outside = measured - predicted;
  return {"time outside the step's kernels",
          fmt::format("{} a step go to data loading, checkpoints, logging or a CPU that waits",
                      print(outside)),
          "the loader's time in the log; a profile: devices idle between steps",
          "",
          measured,
          to_seconds(outside)};
}

// Strengths between those that were tried, until the step is near the measured one; the last is the
// one to report.
void come_nearer(Tried& tried, Time predicted, Time measured,
                 const std::function<std::optional<Time>(double)>& step_at) {
  for (int i = 0; i < most_refinements; ++i) {
    const double strength = strength_for(tried, predicted, measured);
    const auto above =
        std::lower_bound(tried.steps.begin(), tried.steps.end(), strength,
                         [](const auto& one, double other) { return one.first < other; });
    if (above != tried.steps.end() && above->first == strength) return;
    const std::optional<Time> step = step_at(strength);
    if (!step) return;
    tried.steps.emplace(above, strength, *step);
    if (distance(*step, measured) < near_enough) return;
  }
}

// A suspect with its surprise, less of which is likelier.
using RankedSuspect = std::pair<double, Suspect>;

bool has_strengths(const Ailment& ailment) { return ailment.strengths[1] > 0; }

// The step at each strength, until one is beyond the measured step.
Tried tried_strengths(const Ailment& ailment, Time predicted, Time measured,
                      const std::function<std::optional<Time>(double)>& step_at) {
  Tried tried;
  for (const double strength : ailment.strengths) {
    if (!(strength > 0)) continue;
    const std::optional<Time> step = step_at(strength);
    if (!step) break;
    tried.steps.emplace_back(strength, *step);
    if (distance(*step, predicted) >= distance(measured, predicted)) break;
  }
  return tried;
}

// The ailment at the strength that comes nearest; empty where it explains nothing.
std::optional<RankedSuspect> ranked_ailment(const Ailment& ailment, const PredictedRun& run,
                                            const Tried& tried, Time measured) {
  if (tried.steps.empty()) return std::nullopt;
  const auto [strength, step] = nearest_step(tried, measured);
  const double after = distance(step, measured);
  if (distance(run.outcome.step_time, measured) - after < smallest_effect) return std::nullopt;
  const double surprise = ailment.surprise + surprise_of_strength(ailment, strength);
  return RankedSuspect{surprise + after / usual_rest,
                       {std::string(ailment.name), with_strength(ailment.words, strength),
                        std::string(ailment.check),
                        tried.of_fewer ? "" : flags_of(run, ailment, strength), step, strength}};
}

// The least surprise that an ailment can have once its strength is found; infinite where it cannot
// be a suspect.
double least_surprise(const Ailment& ailment, const Tried& tried, Time predicted, Time measured) {
  if (tried.steps.empty()) return std::numeric_limits<double>::infinity();
  const Time farthest = tried.steps.back().second;
  const bool reaches = distance(farthest, predicted) >= distance(measured, predicted);
  const double strength = strength_for(tried, predicted, measured);
  const double surprise = ailment.surprise + surprise_of_strength(ailment, strength);
  if (has_strengths(ailment) && reaches) return surprise;
  return surprise + distance(nearest_step(tried, measured).second, measured) / usual_rest;
}

// The ailments whose strength is worth a search: those that may be among the first.
std::vector<std::size_t> to_be_refined(const std::vector<Tried>& tried, Time predicted,
                                       Time measured) {
  const std::span<const Ailment> all = ailments();
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double least = least_surprise(all[i], tried[i], predicted, measured);
    if (std::isfinite(least)) order.emplace_back(least, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < order.size() && i < most_refined; ++i) {
    if (has_strengths(all[order[i].second])) chosen.push_back(order[i].second);
  }
  return chosen;
}

// What no simulation has.
void add_outside(std::vector<RankedSuspect>& likely, const Explanation& found) {
  const Time predicted = found.outcome.step_time;
  const Time measured = found.measured.step;
  const double share = 1 - to_seconds(predicted) / to_seconds(measured);
  likely.emplace_back(surprise_of_pauses + share, time_outside(predicted, measured));
  if (const double reserved = share_of_memory(found); reserved >= 1) {
    likely.emplace_back(surprise_of_full_memory + share,
                        full_memory(reserved, predicted, measured));
  }
}

// An ailment that was tried, with its surprise.
using TriedAilment = std::pair<double, std::size_t>;

// The steps with each ailment, at the strengths that were tried; by ailment.
std::vector<Tried> all_tried(const Bench& bench, Time predicted, Time measured) {
  const std::span<const Ailment> all = ailments();
  const bool slower = measured > predicted;
  std::vector<Tried> tried(all.size());
  in_parallel(all.size(), available_cores(), [&](std::size_t i) {
    if (all[i].slower != slower) return;
    tried[i] = tried_strengths(all[i], predicted, measured,
                               [&](double strength) { return bench.step(all[i], strength); });
  });
  const std::vector<std::size_t> chosen = to_be_refined(tried, predicted, measured);
  in_parallel(chosen.size(), available_cores(), [&](std::size_t k) {
    const std::size_t i = chosen[k];
    come_nearer(tried[i], predicted, measured,
                [&](double strength) { return bench.step(all[i], strength); });
  });
  return tried;
}

// The same of the run that is explained, near the strength that a smaller one tells. One that it
// cannot be simulated with, as one slow device of many replicas, stays as the smaller run has it.
Tried confirmed(const Bench& bench, const Ailment& ailment, const Tried& of_smaller, Time predicted,
                Time measured) {
  const double strength = nearest_step(of_smaller, measured).first;
  const std::optional<Time> step = bench.step(ailment, strength);
  if (!step) {
    Tried kept = of_smaller;
    kept.of_fewer = true;
    return kept;
  }
  Tried tried;
  tried.steps.emplace_back(strength, *step);
  if (!has_strengths(ailment) || distance(*step, measured) < near_enough) return tried;
  // A step grows linearly with what an ailment multiplies.
  const double reached = to_seconds(*step - predicted);
  const double wanted = to_seconds(measured - predicted);
  if (!(strength > 1) || !(wanted / reached > 0)) return tried;
  const double better = std::min(ailment.strengths.back(), 1 + (strength - 1) * wanted / reached);
  if (const std::optional<Time> nearer = bench.step(ailment, better)) {
    tried.steps.emplace_back(better, *nearer);
  }
  return tried;
}

// Replaces the likeliest by what the run that is explained does with them.
void confirm(const Bench& bench, Time predicted, Time measured, std::vector<Tried>& tried) {
  const std::span<const Ailment> all = ailments();
  std::vector<TriedAilment> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::optional<RankedSuspect> one = ranked_ailment(all[i], bench.run, tried[i], measured);
    if (one) order.emplace_back(one->first, i);
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), most_confirmed));
  in_parallel(order.size(), available_cores(), [&](std::size_t k) {
    const std::size_t i = order[k].second;
    tried[i] = confirmed(bench, all[i], tried[i], predicted, measured);
  });
}

}  // namespace

std::vector<Suspect> suspects_of(const ExplainQuestion& question, const Explanation& found) {
  const Time predicted = found.outcome.step_time;
  const Time measured = found.measured.step;
  const bool by_rate =
      std::any_of(question.measured.begin(), question.measured.end(),
                  [](const MeasuredValue& one) { return one.unit != MeasuredUnit::step; });
  const Bench whole{{question.setting, found.asked, found.outcome}, found.setting, by_rate, 1};
  std::vector<Tried> tried;
  if (const std::unique_ptr<SmallerRun> smaller = smaller_run(question, found)) {
    const Bench bench{{smaller->request, smaller->opened.asked, smaller->outcome},
                      smaller->opened.setting,
                      by_rate,
                      to_seconds(predicted) / to_seconds(smaller->outcome.step_time)};
    tried = all_tried(bench, predicted, measured);
    confirm(whole, predicted, measured, tried);
  } else {
    tried = all_tried(whole, predicted, measured);
  }
  const std::span<const Ailment> all = ailments();
  std::vector<RankedSuspect> likely;
  if (measured > predicted) add_outside(likely, found);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::optional<RankedSuspect> one = ranked_ailment(all[i], whole.run, tried[i], measured);
    if (one) likely.push_back(*std::move(one));
  }
  std::stable_sort(likely.begin(), likely.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Suspect> suspects;
  for (std::size_t i = 0; i < likely.size() && i < most_suspects; ++i) {
    suspects.push_back(std::move(likely[i].second));
  }
  return suspects;
}

}  // namespace stageline::answers
