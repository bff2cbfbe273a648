// Takes the compute of a step apart by kind of kernel, and the rest by cause.
#include "tools/answers/step_parts.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "cost_models/transformers/kernel_times.hpp"
#include "sim/base/index.hpp"

namespace stageline::answers {
namespace {

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

}  // namespace

std::vector<StepPart> step_parts(const SettingRequest& request, const Setting& setting,
                                 const Case& asked, const Outcome& outcome,
                                 const Waterfall& waterfall) {
  std::vector<StepPart> parts;
  add_compute(parts, asked.model, kernels_of(request, setting), waterfall.ideal);
  for (std::size_t i = 0; i < waterfall.by.size(); ++i) {
    const auto cause = static_cast<StepCause>(i);
    const Time time = waterfall.by[i];
    if (time == Time{}) continue;
    if (cause == StepCause::blocking_collectives && time > Time{}) {
      add_blocking(parts, outcome, time);
    } else {
      parts.push_back({std::string(name(cause)), time, std::string(remedy_of(cause))});
    }
  }
  return parts;
}

}  // namespace stageline::answers
