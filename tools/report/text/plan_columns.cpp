// What a plan says of a point of its front.
#include "tools/report/text/plan_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "tools/base/amounts.hpp"
#include "tools/base/text.hpp"
#include "tools/planner/words.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/text/plan.hpp"

namespace stageline::report {
namespace {

constexpr const char* not_known = "–";
constexpr std::size_t widest_cut = 24;  // characters

const planner::PlanPoint& fastest_point(const planner::Plan& plan) { return plan.front.front(); }

// Whether experts have a tensor degree of their own in any plan.
bool any_folded(const planner::Plan& plan) {
  return std::any_of(plan.front.begin(), plan.front.end(), [](const planner::PlanPoint& one) {
    return one.candidate.shape.degrees.folded();
  });
}

std::string degrees_cell(const PlanRow& row) {
  const auto widest = [&](int Degrees::*degree) {
    int most = 1;
    for (const planner::PlanPoint& one : row.plan->front) {
      most = std::max(most, one.candidate.shape.degrees.*degree);
    }
    return most;
  };
  const Degrees& degrees = row.point->candidate.shape.degrees;
  std::string text = fmt::format("{}·{}·{}", degrees.tensor, degrees.pipeline, degrees.data);
  if (widest(&Degrees::context) > 1) text += fmt::format("·{}", degrees.context);
  if (widest(&Degrees::expert) > 1) text += fmt::format("·{}", degrees.expert);
  if (any_folded(*row.plan)) text += fmt::format("·{}", degrees.expert_tensor_ranks());
  return text;
}

std::string microbatches_cell(const PlanRow& row) {
  const planner::Shape& shape = row.point->candidate.shape;
  const int size = shape.microbatch_size > 0 ? shape.microbatch_size : row.model->batch;
  return size > 0 ? fmt::format("{} × {}", shape.microbatches, size)
                  : fmt::format("{}", shape.microbatches);
}

std::string slower_cell(const PlanRow& row) {
  const Time best = fastest_point(*row.plan).verdict.step;
  if (row.place == 0 || best <= Time{}) return not_known;
  return signed_share(to_seconds(row.point->verdict.step) / to_seconds(best) - 1);
}

std::string range_cell(const PlanRow& row) {
  const Verdict& verdict = row.point->verdict;
  const std::optional<Interval>& interval = verdict.intervals.step;
  return interval ? range_with_unit(print(verdict.step), interval->low, interval->high) : not_known;
}

std::string throughput_cell(const PlanRow& row) {
  if (row.point->verdict.step <= Time{}) return not_known;
  return fmt::format("{:.5g} {}", row.point->verdict.throughput, throughput_unit(*row.model));
}

// The memory of the tightest device, where it is the same in all points.
std::optional<Bytes> memory_of_all(const planner::Plan& plan) {
  std::optional<Bytes> limit;
  for (const planner::PlanPoint& point : plan.front) {
    if (point.verdict.peak.empty()) continue;
    if (!point.verdict.need || (limit && *limit != point.verdict.need->limit)) return std::nullopt;
    limit = point.verdict.need->limit;
  }
  return limit;
}

std::string peak_cell(const PlanRow& row) {
  const Verdict& verdict = row.point->verdict;
  if (verdict.peak.empty()) return "unknown";
  std::string peak = print(verdict.fullest());
  if (!verdict.need || memory_of_all(*row.plan)) return peak;
  return fmt::format("{} of {}", peak, print(verdict.need->limit));
}

template <class Text>
std::string text_or_dash(const std::optional<double>& value, Text&& text) {
  return value ? text(*value) : not_known;
}

// The price of a step, which may be less than a cent.
std::string step_dollars(double dollars) {
  return dollars < 10 ? fmt::format("${:.3g}", dollars) : dollars_text(dollars);
}

CellFigure slower_figure(const PlanRow& row) {
  const Time best = fastest_point(*row.plan).verdict.step;
  if (best <= Time{}) return {};
  return number_figure(to_seconds(row.point->verdict.step) / to_seconds(best) - 1);
}

CellFigure half_network_figure(const PlanRow& row) {
  const Time step = row.point->verdict.step;
  if (!row.point->half_network || step <= Time{}) return {};
  return number_figure(to_seconds(*row.point->half_network) / to_seconds(step) - 1);
}

std::string half_network_cell(const PlanRow& row) {
  const Time step = row.point->verdict.step;
  if (!row.point->half_network || step <= Time{}) return not_known;
  return signed_share(to_seconds(*row.point->half_network) / to_seconds(step) - 1);
}

CellFigure throughput_figure(const PlanRow& row) {
  if (row.point->verdict.step <= Time{}) return {};
  return number_figure(row.point->verdict.throughput, throughput_unit(*row.model));
}

CellFigure peak_figure(const PlanRow& row) {
  const Verdict& verdict = row.point->verdict;
  return verdict.peak.empty() ? CellFigure{} : bytes_figure(verdict.fullest());
}

// Those of a language model say tokens/s and MFU in the place of throughput.
bool has_tokens(const PlanRow& row) { return row.point->rates.tokens_per_second.has_value(); }

bool differs_in_devices(const PlanRow& row) {
  return row.point->devices() != fastest_point(*row.plan).devices();
}

}  // namespace

const std::vector<PlanColumn>& plan_columns() {
  static const std::vector<PlanColumn> columns{
      {{"schedule", true, 0, true},
       "In what order each device runs its forwards and backwards",
       [](const PlanRow& row) { return planner::schedule_words(row.point->candidate); }},
      {{"cut", true, 40},
       "How the layers are cut into stages",
       [](const PlanRow& row) { return shortened(row.point->candidate.partition, widest_cut); }},
      {{"tp·pp·dp"},
       "Tensor-parallel ranks, pipeline ranks and data-parallel replicas",
       degrees_cell},
      {{"cp by", true, 30},
       "How context-parallel ranks exchange what attention reads",
       [](const PlanRow& row) {
         const std::string& by = row.point->candidate.shape.cp_comm_type;
         return by.empty() ? std::string(not_known) : by;
       },
       nullptr,
       [](const PlanRow& row) { return !row.point->candidate.shape.cp_comm_type.empty(); }},
      {{"placement", true, 35},
       "On which devices of the racks a job that is larger than one stands",
       [](const PlanRow& row) {
         const std::string& placement = row.point->candidate.shape.placement;
         return placement.empty() ? std::string(not_known) : placement;
       },
       nullptr,
       [](const PlanRow& row) { return !row.point->candidate.shape.placement.empty(); }},
      {{"ZeRO", false, 12},
       "Level of state that data-parallel ranks divide among them; each: beside a pipeline, "
       "exchanged in every micro-batch",
       [](const PlanRow& row) {
         const Degrees& degrees = row.point->candidate.shape.degrees;
         const bool each = degrees.pipeline > 1 && reduces_in_every_backward(degrees);
         return fmt::format("{}{}", name(degrees.zero), each ? " each" : "");
       },
       nullptr,
       [](const PlanRow& row) { return row.point->candidate.shape.degrees.zero != Zero::none; }},
      {{"sequence", true, 60},
       "Whether tensor-parallel ranks share the activations of norms and dropouts",
       [](const PlanRow& row) {
         return std::string(row.point->candidate.shape.sequence_parallel ? "parallel" : not_known);
       },
       nullptr,
       [](const PlanRow& row) { return row.point->candidate.shape.sequence_parallel; }},
      {{"micro-batches", false, 0, false, false, 6},
       "Of a step and pipeline, times their samples",
       microbatches_cell,
       [](const PlanRow& row) { return count_figure(row.point->candidate.shape.microbatches); }},
      {{"recompute", true},
       "What runs its forward again in the backward, to hold less memory",
       [](const PlanRow& row) { return print(row.point->candidate.recomputation); },
       nullptr,
       [](const PlanRow& row) { return !row.point->candidate.recomputation.parts.empty(); }},
      {{"offload", true, 20},
       "Whose stashes are copied to the host and back",
       [](const PlanRow& row) { return print(row.point->candidate.offloading); },
       nullptr,
       [](const PlanRow& row) { return print(row.point->candidate.offloading) != "none"; }},
      {{"devices"},
       "Devices of the run",
       [](const PlanRow& row) { return fmt::format("{}", row.point->devices()); },
       [](const PlanRow& row) { return count_figure(row.point->devices()); },
       differs_in_devices},
      {{"step"},
       "Steady state: from the end of one step to the end of the next",
       [](const PlanRow& row) { return print(row.point->verdict.step); },
       [](const PlanRow& row) { return time_figure(row.point->verdict.step); }},
      {{"range", false, 52},
       "Where the step is in 80 % of the published runs of its class",
       range_cell,
       nullptr,
       [](const PlanRow& row) { return row.point->verdict.intervals.step.has_value(); }},
      {{"slower", false, 50}, "Than the fastest of the front", slower_cell, slower_figure},
      {{"half network", false, 48},
       "How much longer the step is where a byte between machines takes twice as long",
       half_network_cell,
       half_network_figure,
       [](const PlanRow& row) { return row.point->half_network > row.point->verdict.step; }},
      {{"throughput", false, 70},
       "Samples of a step over its time, all devices together",
       throughput_cell,
       throughput_figure,
       [](const PlanRow& row) { return !has_tokens(row); }},
      {{"tokens/s/GPU", false, 14, false, false, 7},
       "Tokens of a step over its time and the number of devices",
       [](const PlanRow& row) {
         return text_or_dash(row.point->rates.tokens_per_device_second, count_text);
       },
       [](const PlanRow& row) {
         return number_figure(row.point->rates.tokens_per_device_second, "tokens/s/GPU");
       },
       has_tokens},
      {{"MFU", false, 10},
       "Model FLOPs of a step over what the peaks of all devices allow in that time",
       [](const PlanRow& row) { return text_or_dash(row.point->rates.mfu, percent); },
       [](const PlanRow& row) { return number_figure(row.point->rates.mfu); },
       [](const PlanRow& row) { return row.point->rates.mfu.has_value(); }},
      {{"peak memory", false, 0, false, false, 5},
       "The highest peak of any device, of the memory where it is tightest",
       peak_cell,
       peak_figure},
      {{"GPU-hours", false, 55},
       "Hours of all devices together for the tokens of --tokens",
       [](const PlanRow& row) { return text_or_dash(row.point->rates.device_hours, count_text); },
       [](const PlanRow& row) { return number_figure(row.point->rates.device_hours, "h"); },
       [](const PlanRow& row) { return row.point->rates.device_hours.has_value(); }},
      {{"cost", false, 25},
       "Those hours at the price of the devices",
       [](const PlanRow& row) { return text_or_dash(row.point->rates.dollars, dollars_text); },
       [](const PlanRow& row) { return number_figure(row.point->rates.dollars, "US dollars"); },
       [](const PlanRow& row) { return row.point->rates.dollars.has_value(); }},
      {{"cost a step", false, 45},
       "The time of all devices in a step at their price",
       [](const PlanRow& row) { return text_or_dash(row.point->dollars_step, step_dollars); },
       [](const PlanRow& row) { return number_figure(row.point->dollars_step, "US dollars"); },
       [](const PlanRow& row) { return row.point->dollars_step.has_value(); }},
  };
  return columns;
}

namespace {

std::string degrees_title(const planner::Plan& plan) {
  std::string title = "tp·pp·dp";
  const auto any = [&](int Degrees::*degree) {
    return std::any_of(plan.front.begin(), plan.front.end(), [&](const planner::PlanPoint& one) {
      return one.candidate.shape.degrees.*degree > 1;
    });
  };
  if (any(&Degrees::context)) title += "·cp";
  if (any(&Degrees::expert)) title += "·ep";
  if (any_folded(plan)) title += "·etp";
  return title;
}

}  // namespace

Column titled(const PlanColumn& column, const planner::Plan& plan) {
  Column result = column.column;
  if (column.cell == degrees_cell) {
    result.title = degrees_title(plan);
    result.break_at = std::string_view("tp·pp·").size();
  }
  if (const std::optional<Bytes> limit = memory_of_all(plan); limit && column.cell == peak_cell) {
    result.title = "peak of " + print(*limit);
    result.break_at = std::string_view("peak of ").size();
  }
  return result;
}

}  // namespace stageline::report
