// Scales costs by micro-batch, and puts those of kinds together.
#include "sim/varied_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::array stage_times{&StageCosts::forward, &StageCosts::input_grad,
                                 &StageCosts::weight_grad, &StageCosts::backward,
                                 &StageCosts::recompute};
constexpr std::array blocking_times{&BlockingTimes::forward, &BlockingTimes::input_grad,
                                    &BlockingTimes::weight_grad, &BlockingTimes::backward,
                                    &BlockingTimes::recompute};
constexpr std::array stage_bytes{&StageCosts::stash_input_grad, &StageCosts::stash_weight_grad,
                                 &StageCosts::stash_gradient, &StageCosts::boundary,
                                 &StageCosts::workspace};
constexpr std::array stage_workspaces{
    &StageCosts::backward_workspace, &StageCosts::input_grad_workspace,
    &StageCosts::divided_input_grad_workspace, &StageCosts::recomputed_workspace,
    &StageCosts::weight_grad_workspace};
constexpr std::array edge_bytes{&EdgeCosts::activation, &EdgeCosts::gradient,
                                &EdgeCosts::activation_kept};

// Each of the fields that a micro-batch decides.
template <class Stage, class OnTime, class OnBytes>
void for_fields(Stage& stage, OnTime&& on_time, OnBytes&& on_bytes) {
  for (const auto field : stage_times) on_time(stage.*field);
  for (const auto field : blocking_times) {
    on_time(stage.blocking.*field);
    on_time(stage.hidden.*field);
    for (auto& of_group : stage.blocking_by) on_time(of_group.*field);
  }
  for (const auto field : stage_bytes) on_bytes(stage.*field);
  for (const auto field : stage_workspaces) {
    if (stage.*field) on_bytes(*(stage.*field));
  }
}

std::int64_t scaled(std::int64_t number, double factor, std::int64_t most, std::string_view what) {
  const double product = std::round(static_cast<double>(number) * factor);
  if (product <= static_cast<double>(most)) return static_cast<std::int64_t>(product);
  throw UsageError(
      fmt::format("{} of a micro-batch that takes {:g} times the costs does not fit: at most {}",
                  what, factor, most));
}

// Where I and W together are as long as B, they stay so.
StageCosts scaled(StageCosts stage, double factor) {
  const bool is_sum = stage.backward == stage.input_grad + stage.weight_grad;
  for_fields(
      stage,
      [&](Time& time) {
        time = Time{scaled(time.count(), factor, longest_run.count(), "a time, ps,")};
      },
      [&](Bytes& bytes) {
        bytes = Bytes{scaled(bytes.count, factor, most_bytes_held.count, "the bytes")};
      });
  if (is_sum) stage.backward = stage.input_grad + stage.weight_grad;
  for (HeldSteps* const steps :
       {&stage.steps.forward, &stage.steps.lone_forward, &stage.steps.input_grad,
        &stage.steps.weight_grad, &stage.steps.backward}) {
    for (HeldStep& step : *steps) {
      step.beyond = Bytes{std::llround(static_cast<double>(step.beyond.count) * factor)};
    }
  }
  return stage;
}

MicrobatchCosts scaled(const Costs& costs, double factor) {
  MicrobatchCosts kind;
  for (const StageCosts& stage : costs.stage) kind.stage.push_back(scaled(stage, factor));
  for (EdgeCosts edge : costs.edges) {
    for (const auto field : edge_bytes) {
      edge.*field = Bytes{scaled((edge.*field).count, factor, most_bytes_held.count, "the bytes")};
    }
    kind.edges.push_back(edge);
  }
  return kind;
}

// Weights and what is done once a step are not a micro-batch's.
void take_step_costs(StageCosts& stage, const StageCosts& from) {
  stage.update = from.update;
  stage.weights = from.weights;
  stage.gradients = from.gradients;
  stage.optimizer_state = from.optimizer_state;
  stage.reduction = from.reduction;
  stage.blocking.update = from.blocking.update;
  stage.hidden.update = from.hidden.update;
  for (std::size_t group = 0; group < stage.blocking_by.size(); ++group) {
    stage.blocking_by[group].update = from.blocking_by[group].update;
  }
}

// The mean of a time over micro-batches, rounded down.
class Mean {
 public:
  explicit Mean(const std::vector<std::uint16_t>& kind_of, std::size_t kinds) : count_(kinds) {
    for (const std::uint16_t kind : kind_of) ++count_[kind];
    all_ = static_cast<std::int64_t>(kind_of.size());
  }
  template <class OfKind>
  Time time(OfKind&& of_kind) const {
    __extension__ using Wide = __int128;
    Wide sum = 0;
    for (std::size_t k = 0; k < count_.size(); ++k) sum += Wide{of_kind(k).count()} * count_[k];
    return Time{static_cast<std::int64_t>(sum / all_)};
  }
  std::size_t kinds() const { return count_.size(); }

 private:
  std::vector<std::int64_t> count_;
  std::int64_t all_ = 1;
};

void take_mean(Costs& costs, std::size_t s, const Mean& mean) {
  StageCosts& stage = costs.stage[s];
  const auto of = [&](std::size_t k) -> const StageCosts& { return costs.kinds[k].stage[s]; };
  bool is_sum = true;
  for (std::size_t k = 0; k < mean.kinds(); ++k) {
    is_sum = is_sum && of(k).backward == of(k).input_grad + of(k).weight_grad;
  }
  for (const auto field : stage_times) {
    stage.*field = mean.time([&](std::size_t k) { return of(k).*field; });
  }
  if (is_sum) stage.backward = stage.input_grad + stage.weight_grad;
  for (const auto field : blocking_times) {
    stage.blocking.*field = mean.time([&](std::size_t k) { return of(k).blocking.*field; });
    stage.hidden.*field = mean.time([&](std::size_t k) { return of(k).hidden.*field; });
    for (std::size_t g = 0; g < stage.blocking_by.size(); ++g) {
      stage.blocking_by[g].*field =
          mean.time([&](std::size_t k) { return of(k).blocking_by[g].*field; });
    }
  }
  for (std::size_t k = 0; k < mean.kinds(); ++k) {
    for (const auto field : stage_bytes) stage.*field = std::max(stage.*field, of(k).*field);
    for (const auto field : stage_workspaces) {
      if (of(k).*field) stage.*field = std::max((stage.*field).value_or(Bytes{}), *(of(k).*field));
    }
    stage.earlier_gradients = std::max(stage.earlier_gradients, of(k).earlier_gradients);
    stage.communication_buffer = std::max(stage.communication_buffer, of(k).communication_buffer);
  }
}

}  // namespace

Costs with_kinds(Costs costs, const std::vector<Costs>& kinds, std::vector<std::uint16_t> kind_of) {
  costs.kinds.clear();
  for (const Costs& one : kinds) {
    MicrobatchCosts& kind = costs.kinds.emplace_back(MicrobatchCosts{one.stage, one.edges});
    for (std::size_t s = 0; s < kind.stage.size(); ++s) {
      take_step_costs(kind.stage[s], costs.stage[s]);
    }
  }
  costs.kind_of = std::move(kind_of);
  const Mean mean(costs.kind_of, costs.kinds.size());
  for (std::size_t s = 0; s < costs.stage.size(); ++s) take_mean(costs, s, mean);
  for (std::size_t e = 0; e < costs.edges.size(); ++e) {
    for (const auto field : edge_bytes) {
      for (const MicrobatchCosts& kind : costs.kinds) {
        costs.edges[e].*field = std::max(costs.edges[e].*field, kind.edges[e].*field);
      }
    }
  }
  return costs;
}

Costs scaled_by_microbatch(Costs costs, const std::vector<double>& factors) {
  for (const double factor : factors) {
    if (factor >= 0 && std::isfinite(factor)) continue;
    throw UsageError(fmt::format(
        "a micro-batch takes a number of times the costs that is finite and at least 0, not {:g}",
        factor));
  }
  if (std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; })) {
    return costs;
  }
  std::map<double, std::uint16_t> known;
  std::vector<std::uint16_t> kind_of;
  std::vector<Costs> kinds;
  for (const double factor : factors) {
    const auto [kind, is_new] = known.try_emplace(factor, static_cast<std::uint16_t>(kinds.size()));
    kind_of.push_back(kind->second);
    if (!is_new) continue;
    if (kinds.size() > 65535) throw UsageError("more than 65,535 different micro-batches");
    MicrobatchCosts one = scaled(costs, factor);
    Costs& of_kind = kinds.emplace_back();
    of_kind.stage = std::move(one.stage);
    of_kind.edges = std::move(one.edges);
  }
  return with_kinds(std::move(costs), kinds, std::move(kind_of));
}

}  // namespace stageline
