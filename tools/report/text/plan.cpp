// Writes a plan as text.
#include "tools/report/text/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/base/amounts.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/svg/text.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/training.hpp"

namespace stageline {
namespace {

constexpr const char* unknown = "–";
constexpr std::size_t widest_cut = 24;  // characters

const PlanPoint& fastest(const Plan& plan) { return plan.front.front(); }

// What the cells of a row show.
struct PlanRow {
  const PlanPoint* point;
  std::size_t place;  // in the front
  const Plan* plan;
  const Model* model;
};

std::string degrees_cell(const PlanRow& row) {
  const auto widest = [&](int Degrees::*degree) {
    int most = 1;
    for (const PlanPoint& one : row.plan->front) {
      most = std::max(most, one.candidate.shape.degrees.*degree);
    }
    return most;
  };
  const Degrees& degrees = row.point->candidate.shape.degrees;
  std::string text = fmt::format("{}·{}·{}", degrees.tensor, degrees.pipeline, degrees.data);
  if (widest(&Degrees::context) > 1) text += fmt::format("·{}", degrees.context);
  if (widest(&Degrees::expert) > 1) text += fmt::format("·{}", degrees.expert);
  return text;
}

std::string degrees_title(const Plan& plan) {
  std::string title = "tp·pp·dp";
  const auto any = [&](int Degrees::*degree) {
    return std::any_of(plan.front.begin(), plan.front.end(), [&](const PlanPoint& one) {
      return one.candidate.shape.degrees.*degree > 1;
    });
  };
  if (any(&Degrees::context)) title += "·cp";
  if (any(&Degrees::expert)) title += "·ep";
  return title;
}

std::string microbatches_cell(const PlanRow& row) {
  const Shape& shape = row.point->candidate.shape;
  const int size = shape.microbatch_size > 0 ? shape.microbatch_size : row.model->batch;
  return size > 0 ? fmt::format("{} × {}", shape.microbatches, size)
                  : fmt::format("{}", shape.microbatches);
}

std::string slower_cell(const PlanRow& row) {
  const Time best = fastest(*row.plan).verdict.step;
  if (row.place == 0 || best <= Time{}) return unknown;
  return signed_share(to_seconds(row.point->verdict.step) / to_seconds(best) - 1);
}

std::string throughput_cell(const PlanRow& row) {
  if (row.point->verdict.step <= Time{}) return unknown;
  return fmt::format("{:.5g} {}", row.point->verdict.throughput, throughput_unit(*row.model));
}

std::string peak_cell(const PlanRow& row) {
  const Verdict& verdict = row.point->verdict;
  if (verdict.peak.empty()) return "unknown";
  const std::string peak = print(verdict.fullest());
  return verdict.need ? fmt::format("{} of {}", peak, print(verdict.need->limit)) : peak;
}

template <class Text>
std::string text_or_unknown(const std::optional<double>& value, Text&& text) {
  return value ? text(*value) : unknown;
}

// Of a step, which may cost less than a cent.
std::string step_dollars(double dollars) {
  return dollars < 10 ? fmt::format("${:.3g}", dollars) : dollars_text(dollars);
}

struct PlanColumn {
  Column column;
  std::string (*cell)(const PlanRow&);
  /// Shown where this holds of any row; null: always.
  bool (*matters)(const PlanRow&) = nullptr;
};

// Those of a language model say tokens/s and MFU in the place of throughput.
bool has_tokens(const PlanRow& row) { return row.point->rates.tokens_per_second.has_value(); }

bool differs_in_devices(const PlanRow& row) {
  return row.point->devices() != fastest(*row.plan).devices();
}

const std::vector<PlanColumn>& plan_columns() {
  static const std::vector<PlanColumn> columns{
      {{"schedule", true, 0, true},
       [](const PlanRow& row) { return spelled(row.point->candidate.spec); }},
      {{"cut", true, 40},
       [](const PlanRow& row) { return shortened(row.point->candidate.partition, widest_cut); }},
      {{"tp·pp·dp"}, degrees_cell},
      {{"ZeRO", false, 30},
       [](const PlanRow& row) {
         return std::string(name(row.point->candidate.shape.degrees.zero));
       },
       [](const PlanRow& row) { return row.point->candidate.shape.degrees.zero != Zero::none; }},
      {{"sequence", true, 60},
       [](const PlanRow& row) {
         return std::string(row.point->candidate.shape.sequence_parallel ? "parallel" : unknown);
       },
       [](const PlanRow& row) { return row.point->candidate.shape.sequence_parallel; }},
      {{"micro-batches"}, microbatches_cell},
      {{"recompute", true},
       [](const PlanRow& row) { return print(row.point->candidate.recomputation); },
       [](const PlanRow& row) { return !row.point->candidate.recomputation.parts.empty(); }},
      {{"offload", true, 20},
       [](const PlanRow& row) { return print(row.point->candidate.offloading); },
       [](const PlanRow& row) { return print(row.point->candidate.offloading) != "none"; }},
      {{"devices"},
       [](const PlanRow& row) { return fmt::format("{}", row.point->devices()); },
       differs_in_devices},
      {{"step"}, [](const PlanRow& row) { return print(row.point->verdict.step); }},
      {{"slower", false, 50}, slower_cell},
      {{"throughput", false, 70},
       throughput_cell,
       [](const PlanRow& row) { return !has_tokens(row); }},
      {{"tokens/s/GPU", false, 65},
       [](const PlanRow& row) {
         return text_or_unknown(row.point->rates.tokens_per_device_second, count_text);
       },
       has_tokens},
      {{"MFU", false, 35},
       [](const PlanRow& row) { return text_or_unknown(row.point->rates.mfu, percent); },
       [](const PlanRow& row) { return row.point->rates.mfu.has_value(); }},
      {{"peak memory"}, peak_cell},
      {{"GPU-hours", false, 55},
       [](const PlanRow& row) {
         return text_or_unknown(row.point->rates.device_hours, count_text);
       },
       [](const PlanRow& row) { return row.point->rates.device_hours.has_value(); }},
      {{"cost", false, 25},
       [](const PlanRow& row) { return text_or_unknown(row.point->rates.dollars, dollars_text); },
       [](const PlanRow& row) { return row.point->rates.dollars.has_value(); }},
      {{"cost a step", false, 45},
       [](const PlanRow& row) { return text_or_unknown(row.point->dollars_step, step_dollars); },
       [](const PlanRow& row) { return row.point->dollars_step.has_value(); }},
  };
  return columns;
}

// The rows to show: the first, and the recommended one.
std::vector<std::size_t> shown_places(const Plan& plan, std::size_t top) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < plan.front.size(); ++i) {
    if (top == 0 || i < top || i == plan.recommended) places.push_back(i);
  }
  return places;
}

std::string counted(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

}  // namespace

std::string plan_heading(const Setting& setting, const PlanRequest& request) {
  const Model& model = setting.model;
  const std::vector<int>& asked =
      request.space.devices.empty() ? setting.device_counts : request.space.devices;
  const auto [least, most] = std::minmax_element(asked.begin(), asked.end());
  const std::string devices =
      *least == *most ? counted(*most, "device", "devices")
                      : fmt::format("{} to {} devices", grouped(*least), grouped(*most));
  const std::string name = setting.cluster.fixed ? setting.cluster.fixed->name : "";
  const std::string sample = model.sample.empty() ? "sample" : model.sample;
  const std::string tokens =
      model.tokens > 0
          ? fmt::format(" of {} tokens, {} tokens,", model.tokens,
                        count_text(static_cast<double>(request.samples * model.tokens)))
          : "";
  return model_line(setting) +
         fmt::format("{}{} · {}{} an update\n", devices, name.empty() ? "" : " of " + name,
                     counted(request.samples, sample.c_str(), (sample + "s").c_str()), tokens);
}

std::string plan_table(const Model& model, const Plan& plan, const PlanView& view) {
  if (plan.front.empty()) return "";
  std::vector<PlanRow> rows;
  for (const std::size_t place : shown_places(plan, view.top)) {
    rows.push_back({&plan.front[place], place, &plan, &model});
  }
  std::vector<Column> columns{{"", false, 0, true}};
  std::vector<std::vector<std::string>> cells;
  for (const PlanRow& row : rows) {
    cells.push_back(
        {fmt::format("{}{}", row.place == plan.recommended ? "→ " : "", row.place + 1)});
  }
  for (const PlanColumn& one : plan_columns()) {
    if (one.matters != nullptr && std::none_of(rows.begin(), rows.end(), one.matters)) continue;
    columns.push_back(one.column);
    if (one.cell == degrees_cell) columns.back().title = degrees_title(plan);
    for (std::size_t i = 0; i < rows.size(); ++i) cells[i].push_back(one.cell(rows[i]));
  }
  const FittedTable fitted = fitted_table(columns, cells, view.width);
  std::string text = fitted.text;
  const std::size_t more = plan.front.size() - rows.size();
  if (more > 0) text += fmt::format("… {} more: --top {}\n", more, plan.front.size());
  if (!fitted.left_out.empty()) {
    text += wrapped(fmt::format("… without {}: a wider terminal or COLUMNS=0\n",
                                fmt::join(fitted.left_out, ", ")),
                    view.width);
  }
  return text;
}

std::string command_of(const PlanPoint& point, const PlanView& view) {
  return point.flags.empty() ? view.command : view.command + " " + point.flags;
}

std::string plan_answer(const Plan& plan, const PlanView& view) {
  const auto prose = [&](const std::string& text) { return wrapped(text, view.width); };
  if (plan.front.empty()) {
    if (!plan.missing) return prose("→ nothing that was tried can run\n");
    return prose(fmt::format("→ {}: {} are missing on {}; the least, with\n",
                             plan.partial ? "nothing that fits was found yet" : "nothing fits",
                             print(plan.missing->bytes), plan.missing->where)) +
           fmt::format("  {} {}\n", view.command, plan.missing->flags);
  }
  std::string text;
  if (!plan.sentence.empty()) text += prose(fmt::format("→ {}\n", plan.sentence));
  if (plan.recommended) text += "  " + command_of(plan.front[*plan.recommended], view) + "\n";
  if (!view.flags) return text;
  text += "\n";
  for (const std::size_t place : shown_places(plan, view.top)) {
    text += fmt::format("{}: {}\n", place + 1, command_of(plan.front[place], view));
  }
  return text;
}

std::string plan_search(const Plan& plan) {
  const PlanProgress& counts = plan.counts;
  const std::int64_t all = counts.judged + counts.pruned + counts.refused + counts.left;
  const std::string numbers = fmt::format(
      "{}, {} simulated, {} pruned by bound{}{}", counted(all, "candidate", "candidates"),
      grouped(counts.judged), grouped(counts.pruned),
      counts.refused > 0 ? fmt::format(", {} that cannot run", grouped(counts.refused)) : "",
      counts.left > 0 ? fmt::format(", {} not looked at", grouped(counts.left)) : "");
  if (plan.front.empty()) return fmt::format("searched: {}\n", numbers);
  if (plan.exhausted) return fmt::format("optimal over what was searched: {}\n", numbers);
  std::string bound;
  if (plan.bound > Time{}) {
    const double gap = plan_gap(plan);
    bound =
        fmt::format("; nothing in it is faster than {}, {}", print(plan.bound),
                    gap < 0.00005 ? "which the fastest reaches"
                                  : fmt::format("{} below the fastest", percent(gap / (1 + gap))));
  }
  return fmt::format("{}: {}{}\n", plan.partial ? "best so far" : "best found", numbers, bound);
}

std::string plan_dropped(const Plan& plan, int width) {
  std::vector<std::vector<std::string>> pruned;
  std::vector<std::vector<std::string>> refused;
  for (const PlanDropped& one : plan.dropped) {
    const std::string count = grouped(one.candidates);
    if (one.bound) {
      pruned.push_back({print(*one.bound), count, one.what, one.why});
    } else {
      refused.push_back({count, one.what, one.why});
    }
  }
  std::string text;
  if (!pruned.empty()) {
    text += "Pruned: no candidate of these is faster than its bound\n" +
            table({{"bound"}, {"candidates"}, {"flags", true}, {"why", true, 0, false, true}},
                  pruned, width);
  }
  if (!refused.empty()) {
    text += (text.empty() ? "" : "\n") + std::string("Cannot run\n") +
            table({{"candidates"}, {"flags", true}, {"why", true, 0, false, true}}, refused, width);
  }
  return text;
}

std::string progress_words(const PlanProgress& progress) {
  std::string text =
      fmt::format("tried {} · pruned {}", grouped(progress.judged), grouped(progress.pruned));
  if (progress.left > 0) text += fmt::format(" · left {}", grouped(progress.left));
  if (progress.best > Time{}) text += fmt::format(" · best {}", print(progress.best));
  if (progress.bound > Time{}) text += fmt::format(" · bound {}", print(progress.bound));
  return text;
}

std::string grouped(std::int64_t count) {
  std::string text = fmt::format("{}", count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > first; at -= 3) {
    text.insert(static_cast<std::size_t>(at), " ");
  }
  return text;
}

double plan_gap(const Plan& plan) {
  if (plan.front.empty() || plan.bound <= Time{}) return 0;
  return std::max(0.0, to_seconds(fastest(plan).verdict.step) / to_seconds(plan.bound) - 1);
}

std::string throughput_unit(const Model& model) {
  if (model.batch == 0) return "micro-batches/s";
  return (model.sample.empty() ? std::string("sample") : model.sample) + "s/s";
}

}  // namespace stageline
