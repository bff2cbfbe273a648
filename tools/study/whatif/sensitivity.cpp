#include "tools/study/whatif/sensitivity.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/analysis/cycle_words.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/parallel.hpp"
#include "tools/base/table.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/pace/quick_pace.hpp"
#include "tools/study/pace/run_with_pace.hpp"
#include "tools/study/whatif/resimulation.hpp"

namespace stageline {
namespace {

constexpr double a_little = 0.01;  // of finite differences, and the least change that counts
// Tried where 1 % changes nothing.
constexpr std::array down{0.95, 0.9, 0.8, 0.7, 0.5, 0.25, 0.0};
constexpr std::array up{1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0};
constexpr double least_effect = 1e-6;  // of the step: less is rounding

// The smallest change that makes a difference, of those tried: they go away from 1, and an effect
// that is there is taken to be there farther away.
template <std::size_t tries>
std::optional<double> first_effect(Resimulation::Changed& changed, Time step,
                                   const std::array<double, tries>& factors) {
  const auto has_effect = [&](double factor) {
    return std::abs(gain(step, changed.step(factor))) > least_effect;
  };
  if (!has_effect(factors.back())) return std::nullopt;
  std::size_t without = 0;  // so many have none
  std::size_t with = factors.size() - 1;
  while (without < with) {
    const std::size_t middle = (without + with) / 2;
    if (has_effect(factors[middle])) {
      with = middle;
    } else {
      without = middle + 1;
    }
  }
  return factors[with];
}

// Everything may take `most_factor` times as long.
void check_room(const TaskGraph& graph) {
  double sum = 0;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    sum += to_seconds(graph.duration[task] + graph.paths[graph.path_of[task]].lag);
  }
  if (sum * PeriodCurve::most_factor <= to_seconds(longest_run)) return;
  throw UsageError(fmt::format(
      "the program lasts up to {:.3g} s, and {:g} times as long is asked for, more than can be added "
      "up ({:.3g} s); check the units of times and links",
      sum, PeriodCurve::most_factor, to_seconds(longest_run)));
}

void sort_effects(std::vector<LeverEffect>& effects) {
  std::stable_sort(effects.begin(), effects.end(), [](const LeverEffect& a, const LeverEffect& b) {
    return std::tie(a.faster, a.twice, a.free) < std::tie(b.faster, b.twice, b.free);
  });
}

std::string hardware(const Lever& lever) {
  switch (lever.kind) {
    case LeverKind::stage:
      return fmt::format("the compute of {}", lever.name);
    case LeverKind::bandwidth:
      return "the bandwidth of the links";
    case LeverKind::latency:
      return "the latency of the links";
    case LeverKind::device:
    case LeverKind::collectives:
      return "the " + lever.name;
    case LeverKind::op_kind:
    case LeverKind::stage_op:
    case LeverKind::memory:
    case LeverKind::route:
      break;
  }
  return lever.name;
}

}  // namespace

std::string_view name(SensitivityEngine engine) {
  switch (engine) {
    case SensitivityEngine::cycle:
      return "cycle";
    case SensitivityEngine::simulated:
      return "simulated";
  }
  return "";
}

double gain(Time step, Time changed) {
  if (step == Time{}) return 0;
  return static_cast<double>((step - changed).count()) / static_cast<double>(step.count());
}

Sensitivity sensitivity_of(const Case& asked, const Outcome& nominal, int threads,
                           const std::atomic<bool>* stop, const Progress& progress) {
  const Layout layout = checked_layout(asked);
  const Run run = run_with_pace(asked, layout, nominal);
  Pace pace = pace_of(run, PaceOf::cycle);
  Sensitivity found;
  found.step = pace.step.time;
  found.steps = run.program.steps;
  if (found.step == Time{}) throw UsageError("a step takes no time, so nothing makes it shorter");
  const Costs& costs = nominal.costs;
  const TaskGraph alone = compile(run.program, costs);
  const Levers levers(asked, layout, costs, run.program, alone);
  check_room(alone);
  const int microbatches = run.program.microbatches;
  if (std::abs(gain(nominal.step_time, found.step)) > same_step) {
    found.notes.push_back(fmt::format(
        "the run of {} steps that is changed has a step of {}, the steady state one of {}",
        found.steps, print(found.step), print(nominal.step_time)));
  }

  const auto has = [&](LeverKind kind) {
    return std::any_of(levers.all().begin(), levers.all().end(),
                       [kind](const Lever& lever) { return lever.kind == kind; });
  };
  if (has(LeverKind::bandwidth) && has(LeverKind::collectives)) {
    found.notes.emplace_back(
        "the links' bandwidth is that of messages and reductions; blocking collectives, which faster "
        "links shorten too, are a lever of their own");
  }

  const bool slowed = !costs.slowdown.empty();
  const bool shared = shares_resources(run.graph);
  found.exact = pace.derived && !slowed;
  found.engine = found.exact && !shared ? SensitivityEngine::cycle : SensitivityEngine::simulated;
  if (pace.derived) {
    found.cycle = in_words(pace.derived->period, pace.derived->round, run.program.devices);
  }
  std::optional<PeriodCurve> curve;
  const int round = pace.derived ? pace.derived->round : 1;
  if (found.exact) curve.emplace(alone, std::move(pace.derived->events), levers.times());
  const bool simulated = found.engine == SensitivityEngine::simulated;
  std::optional<Resimulation> resimulation;
  if (simulated) resimulation.emplace(asked, layout, costs, run, alone, levers, found.step);

  found.levers = levers.all().size();
  found.effects.resize(found.levers);
  std::vector<char> done(found.levers);
  ProgressCount count(progress, static_cast<std::int64_t>(found.levers));
  in_parallel(found.levers, threads > 0 ? threads : available_cores(), [&](std::size_t i) {
    if (stop != nullptr && stop->load()) return;
    done[i] = 1;
    LeverEffect& effect = found.effects[i];
    effect.lever = levers.all()[i];
    const TaskTable part = levers.part(effect.lever);
    std::optional<Resimulation::Changed> changed;
    if (simulated) changed.emplace(*resimulation, effect.lever);
    const auto step = [&](double factor) {
      return simulated ? changed->step(factor)
                       : step_of(curve->at(part, factor), round, microbatches);
    };
    effect.slower = step(1.1);
    effect.faster = step(0.9);
    effect.twice = step(0.5);
    effect.free = step(0);
    if (curve) {
      const PeriodSlopes slopes = curve->slopes(part);
      const Period& period = curve->period();
      const double whole =
          static_cast<double>(period.time.count()) / static_cast<double>(period.rounds);
      effect.share_faster = slopes.faster.value() / whole;
      effect.share_slower = slopes.slower.value() / whole;
      if (!simulated) {  // where links serve anew, it is not known how far they hold
        const SlopeReach reach = curve->reach(part, slopes);
        effect.least = reach.least;
        effect.most = reach.most;
      }
    } else {
      effect.share_faster = gain(found.step, step(1 - a_little)) / a_little;
      effect.share_slower = -gain(found.step, step(1 + a_little)) / a_little;
      effect.least = 1 - a_little;
      effect.most = 1 + a_little;
    }
    if (!simulated) return count.add(1);
    if (std::abs(effect.share_faster) <= least_effect) {
      effect.gains_from = first_effect(*changed, found.step, down);
    }
    if (std::abs(effect.share_slower) <= least_effect) {
      effect.costs_from = first_effect(*changed, found.step, up);
    }
    count.add(1);
  });
  std::vector<LeverEffect> known;
  for (std::size_t i = 0; i < found.levers; ++i) {
    if (done[i] != 0) known.push_back(std::move(found.effects[i]));
  }
  found.effects = std::move(known);
  found.partial = found.effects.size() < found.levers;
  sort_effects(found.effects);

  if (found.partial) {
    found.notes.push_back(fmt::format("interrupted: only {} of {} levers were looked at",
                                      found.effects.size(), found.levers));
  }
  if (!found.exact) {
    found.notes.push_back(fmt::format("shares are finite differences of 1 %, because {}",
                                      slowed ? "devices of a machine slow one another"
                                      : flows_take_no_turns(run.graph)
                                          ? "links are shared at fair rates"
                                          : "no order of rounds repeats exactly"));
  } else if (shared) {
    found.notes.push_back(
        "shares are exact for the order in which shared links serve messages now; the steps with "
        "changed times serve them anew, which may be a worse order");
  }
  if (!asked.program) {
    found.notes.push_back(
        "devices keep the order of their ops; a schedule that orders them by their costs (list, "
        "zb_auto, dapple) may do better with the new ones");
  }
  return found;
}

std::string advice_of(const Sensitivity& found) {
  constexpr double worth_saying = 5e-4;  // less is 0.0 % in words
  const auto best = [&](auto&& is, auto&& time) -> const LeverEffect* {
    const LeverEffect* most = nullptr;
    for (const LeverEffect& effect : found.effects) {
      if (!is(effect.lever)) continue;
      if (most == nullptr || time(effect) < time(*most)) most = &effect;
    }
    return most != nullptr && gain(found.step, time(*most)) > worth_saying ? most : nullptr;
  };
  const auto faster = [](const LeverEffect& effect) { return effect.faster; };
  const auto twice = [](const LeverEffect& effect) { return effect.twice; };
  const auto saved = [&](Time step) { return percent(gain(found.step, step)); };
  const LeverEffect* const kind = best(
      [](const Lever& lever) {
        return lever.kind == LeverKind::op_kind && lane_of(*lever.op) == LaneKind::compute;
      },
      faster);
  const LeverEffect* const place =
      best([](const Lever& lever) { return lever.kind == LeverKind::stage; }, faster);
  const LeverEffect* const device = best(
      [](const Lever& lever) {
        return lever.device && (lever.kind == LeverKind::device || lever.kind == LeverKind::stage);
      },
      twice);
  const LeverEffect* const links = best(
      [](const Lever& lever) {
        return lever.kind == LeverKind::bandwidth || lever.kind == LeverKind::latency ||
               lever.kind == LeverKind::collectives;
      },
      twice);
  std::string text;
  if (links != nullptr && gain(found.step, links->faster) > worth_saying &&
      (kind == nullptr || links->faster < kind->faster)) {
    text = fmt::format("improve {} first (10 % faster: a step {} shorter; twice as fast: {})",
                       hardware(links->lever), saved(links->faster), saved(links->twice));
    if (kind != nullptr) {
      text +=
          fmt::format("; of the ops {} (10 % faster: {})", kind->lever.name, saved(kind->faster));
    }
    if (device != nullptr) {
      text += fmt::format("; of the devices {} (twice as fast: {})", hardware(device->lever),
                          saved(device->twice));
    }
    return text;
  }
  if (kind != nullptr) {
    text = fmt::format("optimize {} first (10 % faster: a step {} shorter)", kind->lever.name,
                       saved(kind->faster));
    text += place != nullptr
                ? fmt::format(", on {} above all ({})", place->lever.name, saved(place->faster))
                : ", on all stages: no stage by itself makes the step shorter";
  }
  if (device != nullptr || links != nullptr) {
    const bool compute = device != nullptr && (links == nullptr || device->twice <= links->twice);
    const LeverEffect& bought = compute ? *device : *links;
    text += fmt::format("{}of the hardware, {} (twice as fast: {})", text.empty() ? "" : "; ",
                        hardware(bought.lever), saved(bought.twice));
    if (compute && links != nullptr) {
      text += fmt::format(", before {} ({})", hardware(links->lever), saved(links->twice));
    }
  } else if (!text.empty()) {
    text += "; no faster device or link by itself makes it shorter";
  }
  return text.empty() ? "nothing by itself makes the step shorter" : text;
}

}  // namespace stageline
