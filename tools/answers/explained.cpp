// Simulates the run as it was asked for, takes its step apart, and simulates it with ailments.
#include "tools/answers/explained.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "cost_models/transformers/kernel_times.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/answers/ailments.hpp"
#include "tools/base/parallel.hpp"
#include "tools/base/text.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_suspects = 3;
constexpr double smallest_effect = 0.02;  // of the step: an ailment below it explains nothing
// What is left unexplained weighs as much as one unit of surprise: assumed.
constexpr double usual_rest = 0.15;
constexpr double surprise_of_pauses = 1.3;  // as Ailment::surprise

// ---- from the peak to the compute ----

// Seconds and FLOPs of the kernels of one micro-batch, by kind; of all layers of one rank.
struct KernelAccount {
  std::array<double, 5> seconds{};  // by KernelKind
  std::array<double, 5> flops{};
  double layers = 0;  // seconds of forward and backward, with launches and waits for the CPU

  double of(KernelKind kind) const { return seconds[static_cast<std::size_t>(kind)]; }
  double flops_of(KernelKind kind) const { return flops[static_cast<std::size_t>(kind)]; }
  double kernels() const {
    double sum = 0;
    for (const double part : seconds) sum += part;
    return sum;
  }
};

KernelAccount account_of(const std::vector<LayerKernelTimes>& layers) {
  KernelAccount account;
  for (const LayerKernelTimes& layer : layers) {
    for (const KernelTime& one : layer.kernels) {
      const auto kind = static_cast<std::size_t>(one.kernel.kind);
      account.seconds[kind] += layer.layers * one.seconds;
      account.flops[kind] += layer.layers * one.kernel.flops;
    }
    account.layers += layer.layers * to_seconds(layer.forward + layer.backward);
  }
  return account;
}

double model_flops_of(const Model& model) {
  double flops = 0;
  for (const Layer& layer : model.layers) {
    flops += static_cast<double>(layer.forward_flops) + static_cast<double>(layer.backward_flops);
  }
  return flops;
}

// Parts that add up to `ideal`. Kernels of a model that is no language model are not known.
void add_compute(std::vector<StepPart>& parts, const Model& model,
                 const std::vector<LayerKernelTimes>& layers, Time ideal) {
  const KernelAccount account = account_of(layers);
  const double flops = model_flops_of(model);
  if (layers.empty() || !(account.layers > 0) || !(model.peak_flops > 0) || !(flops > 0)) {
    parts.push_back({"compute", ideal, ""});
    return;
  }
  const double scale = to_seconds(ideal) / account.layers;
  Time rest = ideal;
  const auto add = [&](const std::string& name, double seconds, const char* remedy) {
    const Time time = from_seconds(scale * std::abs(seconds));
    const Time signed_time = seconds < 0 ? -time : time;
    if (signed_time == Time{}) return;
    rest -= signed_time;
    parts.push_back({name, signed_time, remedy});
  };
  const double peak = model.peak_flops;
  const double products = account.flops_of(KernelKind::gemm);
  const double grouped = account.flops_of(KernelKind::grouped);
  const double attention =
      account.of(KernelKind::attention_flash) + account.of(KernelKind::attention_plain);
  add(fmt::format("at the peak of {:.4g} TFLOP/s", peak / 1e12), flops / peak, "");
  add("products below the peak", account.of(KernelKind::gemm) - products / peak,
      "more rows a product: a larger micro-batch, less tp or cp; 8 bits where the chip has them");
  add("experts' products below the peak", account.of(KernelKind::grouped) - grouped / peak,
      "more rows an expert: a larger micro-batch, or less ep x dp for the same experts");
  add("attention below the peak", attention - (flops - products - grouped) / peak,
      "a faster kernel: attention=fa3 or cudnn; fewer tp ranks, which divide its heads");
  add("elementwise kernels", account.of(KernelKind::elementwise),
      "fused kernels (fused=yes), and sequence parallelism beside tp");
  parts.push_back({"launches and waits for the CPU", rest,
                   "--cuda-graphs, and fewer, larger kernels: a larger micro-batch"});
  if (rest == Time{}) parts.pop_back();
}

// ---- from the compute to the step ----

std::string_view remedy_of(StepCause cause) {
  switch (cause) {
    case StepCause::imbalance:
      return "another cut: --partition simulated";
    case StepCause::fill_and_drain:
      return "more micro-batches a step, or interleaved_1f1b and zero-bubble schedules";
    case StepCause::dependency:
      return "another schedule: stageline compare";
    case StepCause::recompute:
      return "recompute less: modules:…, fewer layers, or more ranks to hold the stashes";
    case StepCause::interference:
      return "";
    case StepCause::messages:
      return "fewer chunks, stages within a machine (--order), or larger micro-batches";
    case StepCause::blocking_collectives:
      return "less tp, ep or cp, groups within a machine, or hidden: tp_overlap, dispatch";
    case StepCause::reductions:
      return "more micro-batches a step, --buckets megatron, or a shard group in a machine";
    case StepCause::optimizer:
      return "--zero 1, which divides the optimizer";
    case StepCause::copies:
      return "less --offload";
    case StepCause::memory_limit:
      return "a higher limit of the schedule";
    case StepCause::jitter:
      return "";
  }
  return "";  // unreachable; g++ wants it
}

// Blocking collectives by group, in proportion to what each takes of the busiest device.
void add_blocking(std::vector<StepPart>& parts, const Outcome& outcome, Time time) {
  double whole = 0;
  for (const double share : outcome.figures.blocking_by_group) whole += share;
  if (!(whole > 0)) {
    parts.push_back(
        {"blocking collectives", time, std::string(remedy_of(StepCause::blocking_collectives))});
    return;
  }
  Time rest = time;
  std::size_t last = 0;
  for (std::size_t i = 0; i < all_dimensions.size(); ++i) {
    if (outcome.figures.blocking_by_group[i] > 0) last = i;
  }
  for (std::size_t i = 0; i <= last; ++i) {
    const double share = outcome.figures.blocking_by_group[i] / whole;
    if (!(share > 0)) continue;
    const Time part = i == last ? rest : from_seconds(share * to_seconds(time));
    rest -= part;
    parts.push_back({fmt::format("blocking collectives of {}", name(all_dimensions[i])), part,
                     std::string(remedy_of(StepCause::blocking_collectives))});
  }
}

std::vector<StepPart> parts_of(const Explanation& found,
                               const std::vector<LayerKernelTimes>& layers) {
  const Waterfall waterfall = waterfall_of(found.asked, found.outcome);
  std::vector<StepPart> parts;
  add_compute(parts, found.asked.model, layers, waterfall.ideal);
  for (std::size_t i = 0; i < waterfall.by.size(); ++i) {
    const auto cause = static_cast<StepCause>(i);
    const Time time = waterfall.by[i];
    if (time == Time{}) continue;
    if (cause == StepCause::blocking_collectives && time > Time{}) {
      add_blocking(parts, found.outcome, time);
    } else {
      parts.push_back({std::string(name(cause)), time, std::string(remedy_of(cause))});
    }
  }
  parts.push_back({"not explained", found.measured.step - found.outcome.step_time, ""});
  return parts;
}

// ---- ailments ----

struct Tried {
  const Ailment* ailment = nullptr;
  std::vector<std::pair<double, Time>> steps;  // by strength; those that cannot run are left out
};

// A step of as many samples as the question's.
std::optional<Time> step_with(const ExplainQuestion& question, const PredictedRun& run,
                              const Ailment& ailment, double strength, bool by_rate) {
  ExplainQuestion changed = question;
  changed.check = nullptr;
  changed.notes.clear();
  if (!ailment.apply(run, strength, changed.setting)) return std::nullopt;
  try {
    const Outcome outcome = study(opened_case(changed).asked, Curves::none);
    const double samples = by_rate ? run.outcome.samples() / outcome.samples() : 1;
    return from_seconds(to_seconds(outcome.step_time) * samples);
  } catch (const UsageError&) {
    return std::nullopt;  // it says nothing of this run
  }
}

double distance(Time step, Time measured) {
  return std::abs(std::log(to_seconds(step) / to_seconds(measured)));
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
  const auto nearest =
      std::min_element(tried.steps.begin(), tried.steps.end(), [&](const auto& a, const auto& b) {
        return distance(a.second, measured) < distance(b.second, measured);
      });
  return nearest->first;
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

std::vector<Suspect> suspects_of(const ExplainQuestion& question, const Explanation& found) {
  const Time predicted = found.outcome.step_time;
  const Time measured = found.measured.step;
  const bool slower = measured > predicted;
  const bool by_rate =
      std::any_of(question.measured.begin(), question.measured.end(),
                  [](const MeasuredValue& one) { return one.unit != MeasuredUnit::step; });
  const PredictedRun run{question.setting, found.asked, found.outcome};
  std::vector<Tried> all;
  for (const Ailment& ailment : ailments()) {
    if (ailment.slower == slower) all.push_back({&ailment, {}});
  }
  std::vector<std::optional<std::pair<double, Suspect>>> ranked(all.size());
  in_parallel(all.size(), available_cores(), [&](std::size_t i) {
    Tried& tried = all[i];
    const Ailment& ailment = *tried.ailment;
    for (const double strength : ailment.strengths) {
      if (!(strength > 0)) continue;
      const std::optional<Time> step = step_with(question, run, ailment, strength, by_rate);
      if (!step) break;
      tried.steps.emplace_back(strength, *step);
      if (distance(*step, predicted) >= distance(measured, predicted)) break;
    }
    if (tried.steps.empty()) return;
    Suspect suspect{std::string(ailment.name),  "",
                    std::string(ailment.check), "",
                    tried.steps.back().second,  tried.steps.back().first};
    if (ailment.strengths[1] > 0) {
      suspect.strength = strength_for(tried, predicted, measured);
      suspect.step =
          step_with(question, run, ailment, suspect.strength, by_rate).value_or(suspect.step);
    }
    suspect.words = with_strength(ailment.words, suspect.strength);
    suspect.flags = flags_of(run, ailment, suspect.strength);
    const double before = distance(predicted, measured);
    const double after = distance(suspect.step, measured);
    if (before - after < smallest_effect) return;
    ranked[i] = {ailment.surprise + after / usual_rest, std::move(suspect)};
  });
  std::vector<std::pair<double, Suspect>> likely;
  if (slower) likely.emplace_back(surprise_of_pauses, time_outside(predicted, measured));
  for (auto& one : ranked) {
    if (one) likely.push_back(std::move(*one));
  }
  std::stable_sort(likely.begin(), likely.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Suspect> suspects;
  for (std::size_t i = 0; i < likely.size() && i < most_suspects; ++i) {
    suspects.push_back(std::move(likely[i].second));
  }
  return suspects;
}

}  // namespace

Explanation answer(const ExplainQuestion& question) {
  OpenedCase opened = opened_case(question);
  Outcome outcome = study(opened.asked, Curves::none);
  if (outcome.step_time <= Time{}) {
    throw UsageError(fmt::format("the step of {} takes no time, and nothing can be held against it",
                                 opened.asked.model.name));
  }
  Explanation found;
  found.setting = std::move(opened.setting);
  found.asked = std::move(opened.asked);
  found.outcome = std::move(outcome);
  found.interval = intervals_of(found.asked.model, found.asked.ranked.get()).step;
  found.memory_measured = question.memory_measured;
  for (std::string& note : setting_notes(found.asked, found.outcome)) {
    found.setting.notes.push_back(std::move(note));
  }
  found.rates = training_rates(found.asked, found.outcome);
  found.measured = measured_step(question.measured, found.outcome.step_time, found.rates,
                                 found.asked.device_count());
  found.parts = parts_of(found, kernels_of(question.setting, found.setting));
  if (std::abs(found.longer()) >= little) found.suspects = suspects_of(question, found);
  return found;
}

}  // namespace stageline
