// Groups hybrid trainings by task and finds the best switch.
#include "tools/lab/training/switch_points.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "tools/base/table.hpp"

namespace stageline::lab {
namespace {

std::int64_t switch_of(const AccuracyCurve& curve) {
  return curve.pipelined() ? curve.settings.pipelined : 0;
}

TrainingSettings without_switch(TrainingSettings settings) {
  settings.pipelined = settings.steps;
  return settings;
}

std::optional<std::size_t> best_of(const AccuracyStudy& study, const SwitchFamily& family) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < family.curves.size(); ++i) {
    const AccuracyCurve& one = study.curves[family.curves[i]];
    if (one.reached.seeds == 0) continue;
    if (!best) {
      best = i;
      continue;
    }
    const AccuracyCurve& other = study.curves[family.curves[*best]];
    const bool better = one.all_reach() == other.all_reach() ? one.reached.time < other.reached.time
                                                             : one.all_reach();
    if (better) best = i;
  }
  return best;
}

std::string words_of(const SwitchFamily& family, std::int64_t steps) {
  if (steps == 0) return "none";
  if (steps == family.steps) return fmt::format("all {}", steps);
  return fmt::format("{}", steps);
}

// `point` gives the i-th switch.
template <class Point>
std::string beside_words(const SwitchFamily& family, std::size_t best, Point point) {
  const bool first = best == 0;
  const bool last = best + 1 == family.curves.size();
  const std::int64_t low = point(first ? best : best - 1);
  const std::int64_t high = point(last ? best : best + 1);
  std::string beside = words_of(family, last ? low : high);
  if (!first && !last) beside = words_of(family, low) + " and " + beside;
  return fmt::format(
      "trained beside it: {} pipelined; if there is one optimum, it lies between {} and {}, and "
      "nothing else there was trained",
      beside, low, high);
}

}  // namespace

std::vector<SwitchFamily> switch_families(const AccuracyStudy& study) {
  std::vector<SwitchFamily> families;
  std::vector<TrainingSettings> settings;
  for (std::size_t i = 0; i < study.curves.size(); ++i) {
    if (!study.curves[i].pipelined()) continue;
    const TrainingSettings mine = without_switch(study.curves[i].settings);
    const auto found = std::find(settings.begin(), settings.end(), mine);
    if (found == settings.end()) {
      settings.push_back(mine);
      families.push_back({"", mine.steps, {i}, {}});
    } else {
      nth(families, found - settings.begin()).curves.push_back(i);
    }
  }
  const std::vector<std::string> names = curve_names(settings);
  std::vector<SwitchFamily> with_switches;
  for (std::size_t f = 0; f < families.size(); ++f) {
    SwitchFamily& family = families[f];
    family.name = names[f];
    for (std::size_t i = 0; i < study.curves.size(); ++i) {
      if (study.curves[i].pipelined()) continue;
      if (without_pipeline(study.curves[i].settings) != without_pipeline(settings[f])) continue;
      family.curves.push_back(i);
      break;
    }
    const auto switches = [&](std::size_t i) {
      return study.curves[i].pipelined() && switch_of(study.curves[i]) < family.steps;
    };
    if (family.curves.size() < 2) continue;
    if (std::none_of(family.curves.begin(), family.curves.end(), switches)) continue;
    std::sort(family.curves.begin(), family.curves.end(), [&](std::size_t a, std::size_t b) {
      return switch_of(study.curves[a]) < switch_of(study.curves[b]);
    });
    family.best = best_of(study, family);
    with_switches.push_back(std::move(family));
  }
  return with_switches;
}

std::vector<std::string> switch_words(const AccuracyStudy& study, const SwitchFamily& family) {
  if (!family.best) return {"no switch point reaches the target"};
  const auto at = [&](std::size_t i) -> const AccuracyCurve& {
    return study.curves[family.curves[i]];
  };
  const std::size_t best = *family.best;
  std::vector<std::string> words;
  std::string fastest = fmt::format("fastest of those trained: {} of {} steps pipelined, {}",
                                    words_of(family, switch_of(at(best))), family.steps,
                                    long_time(at(best).reached.time));
  if (!at(best).all_reach()) {
    fastest += fmt::format(", though only {} of its {} seeds reach the target",
                           at(best).reached.seeds, at(best).runs.size());
  }
  words.push_back(fastest);
  words.push_back(beside_words(family, best, [&](std::size_t i) { return switch_of(at(i)); }));
  if (at(best).reached.before_switch) {
    words.push_back(fmt::format(
        "any switch after step {} is the same training up to the target, and takes as long",
        at(best).reached.latest));
  }
  for (std::size_t i = 0; i < family.curves.size(); ++i) {
    if (!at(i).reached.before_switch) continue;
    words.push_back(
        fmt::format("with {} steps pipelined the target was reached by step {}, before the switch: "
                    "there the switch did not matter",
                    switch_of(at(i)), at(i).reached.latest));
  }
  return words;
}

}  // namespace stageline::lab
