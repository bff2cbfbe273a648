#include "tools/report/figure_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/base/index.hpp"
#include "tools/base/amounts.hpp"
#include "tools/base/text.hpp"

namespace stageline::report {
namespace {

using Facts = FigureFacts;
using Kind = FigureKind;

constexpr double usual_quantile = 0.95;

template <class Value>
FigureValue known(const std::optional<Value>& value) {
  return value ? FigureValue(*value) : FigureValue();
}

FigureValue text(std::string_view words) { return std::string(words); }

FigureValue whole(std::int64_t number) { return number; }

bool takes_time(const Facts& row) { return row.outcome->step_time > Time{}; }

FigureValue if_it_takes_time(const Facts& row, double value) {
  return takes_time(row) ? FigureValue(value) : FigureValue();
}

std::string fit_cell(const Facts& row) {
  return row.outcome->fit == Fit::no ? "NO" : std::string(name(row.outcome->fit));
}

std::string throughput_cell(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  return takes_time(row) ? fmt::format("{:.5g} {}", outcome.throughput, outcome.throughput_unit)
                         : unknown_cell;
}

std::string staleness_cell(const Facts& row) {
  const Outcome& outcome = *row.outcome;
  return fmt::format("{:g}{}", outcome.staleness_max(), outcome.consistent() ? "" : " F≠B");
}

std::string times_words(double value) { return fmt::format("{:.2f}×", value); }

std::string teraflops_words(double flops) {
  return fmt::format("{:.{}f}", flops / 1e12, flops < 1e13 ? 3 : 1);
}

FigureValue if_bytes_are_known(const Facts& row, Bytes bytes) {
  return row.outcome->bytes_known() ? FigureValue(bytes) : FigureValue();
}

// That of the device that peaks highest.
const DeviceMemory& peak_memory(const Facts& row) {
  return nth(row.outcome->memory.device, row.outcome->peak_device());
}

FigureValue highest_peak(const Facts& row) {
  Bytes highest{};
  for (const DeviceMemory& device : row.outcome->memory.device) {
    highest = std::max(highest, device.peak);
  }
  return if_bytes_are_known(row, highest);
}

FigureValue quantile_of(const Facts& row) {
  if (row.uncertain == nullptr || !row.uncertain->steps) return {};
  const bool asked = row.by.measure == RankBy::Measure::quantile;
  return at_quantile(*row.uncertain, asked ? row.by.share : usual_quantile);
}

// Rows that do not fit are no rivals.
FigureValue best_of(const Facts& row) {
  const bool rival =
      row.uncertain != nullptr && row.uncertain->steps && row.outcome->fit != Fit::no;
  return rival ? FigureValue(row.uncertain->best) : FigureValue();
}

// The cost of the training that is asked for, else that of a step.
FigureValue cost_of(const Facts& row) {
  const auto& [rates, energy] = *row.budget;
  return known(rates.device_hours ? rates.dollars : energy.dollars);
}

// An end of the interval around a value.
FigureValue at(const std::optional<Interval>& interval, double Interval::*factor, Time value) {
  if (!interval) return {};
  return Time{std::llround((*interval).*factor * static_cast<double>(value.count()))};
}
FigureValue at(const std::optional<Interval>& interval, double Interval::*factor, Bytes value) {
  if (!interval) return {};
  return Bytes{std::llround((*interval).*factor * static_cast<double>(value.count))};
}

// A rate is low where the step is long.
FigureValue rate_at(const Facts& row, double Interval::*factor, const std::optional<double>& rate) {
  const std::optional<Interval>& interval = row.intervals.step;
  const bool known = interval && rate && (*interval).*factor > 0;
  return known ? FigureValue(*rate / (*interval).*factor) : FigureValue();
}

FigureValue words_of(const std::optional<Interval>& interval) {
  return interval ? FigureValue(provenance_of(*interval)) : FigureValue();
}

// Empty without an interval.
FigureValue peak_at(const Facts& row, double Interval::*factor) {
  const FigureValue peak = highest_peak(row);
  const Bytes* const bytes = std::get_if<Bytes>(&peak);
  return bytes == nullptr ? FigureValue() : at(row.intervals.memory, factor, *bytes);
}

FigureValue peak_of_verdict(const Verdict& verdict, double Interval::*factor) {
  if (verdict.peak.empty()) return {};
  return at(verdict.intervals.memory, factor, verdict.fullest());
}

std::string range_cell(const Facts& row) {
  const std::optional<Interval>& interval = row.intervals.step;
  if (!interval || !takes_time(row)) return unknown_cell;
  return range_with_unit(print(row.outcome->step_time), interval->low, interval->high);
}

bool has_interval(const Facts& row) { return row.intervals.step.has_value(); }

bool has_scenarios(const Facts& row) { return row.uncertain != nullptr; }

bool by_price(const Facts& row) {
  return row.by.measure == RankBy::Measure::energy || row.by.measure == RankBy::Measure::cost;
}

bool without_tokens(const Facts& row) { return !row.has_tokens(); }
bool with_tokens(const Facts& row) { return row.has_tokens(); }

bool has_rates(const Facts& row) {
  return row.budget->rates.tokens_per_second || row.budget->rates.model_flops;
}

constexpr const char* no_time = "where a step takes no time";
constexpr const char* no_tokens = "where the trace does not count tokens or state its `batch`";
constexpr const char* no_flops = "where the trace has no FLOPs";
constexpr const char* no_peak = "where the trace has no FLOPs or states no `peak_flops`";
constexpr const char* no_rates = "where the trace has neither tokens nor FLOPs";
constexpr const char* no_interval = "for other traces than language models priced for a device";
constexpr const char* no_training = "without `--tokens`";

constexpr FigureRow figures[] = {
    {.key = "schedule",
     .property = "schedule",
     .kind = Kind::name,
     .definition = "In what order each device runs its forwards and backwards; the name is what "
                   "--schedule takes",
     .more = "with the knobs that differ from their defaults",
     .value = [](const Facts& row) { return text(row.outcome->schedule); },
     .column = {.title = "schedule", .place = 10, .left = true, .key = true}},
    {.key = "synchronous",
     .property = "synchronous",
     .kind = Kind::yes,
     .definition = "Whether a step ends in one update on weights that all its micro-batches read",
     .value = [](const Facts& row) -> FigureValue {
       return row.outcome->synchrony == Synchrony::synchronous;
     }},
    {.key = "model",
     .kind = Kind::name,
     .definition = "Name of the model",
     .value = [](const Facts& row) { return text(row.model->name); }},
    {.key = "costs",
     .kind = Kind::name,
     .definition = "Where the costs come from: measured, estimated or synthetic",
     .value = [](const Facts& row) { return text(name(row.model->provenance.origin)); }},
    {.key = "cluster",
     .kind = Kind::name,
     .definition = "Name of the cluster",
     .value = [](const Facts& row) { return text(row.cluster->name); }},
    {.key = "partition",
     .kind = Kind::name,
     .definition = "The layers of each stage",
     .value = [](const Facts& row) { return text(print(row.outcome->plan.partition)); }},
    {.key = "cut",
     .property = "cut",
     .kind = Kind::name,
     .definition = "How the layers are cut into stages; the name is what --partition takes",
     .absent = "where it is `balanced`",
     .value = [](const Facts& row) { return text(row.cut); },
     .in_json = [](const Facts& row) { return row.cut != "balanced"; },
     .column = {.title = "cut", .place = 20, .left = true, .key = true}},
    {.key = "devices",
     .property = "devices",
     .kind = Kind::count,
     .definition = "Devices of the run",
     .more = "all degrees of parallelism together",
     .value = [](const Facts& row) { return whole(row.devices); },
     .column = {.title = "devices", .place = 30, .key = true}},
    {.key = "microbatches",
     .property = "microbatches",
     .kind = Kind::count,
     .definition = "Micro-batches of a step, of all pipelines that are simulated",
     .value = [](const Facts& row) { return whole(row.outcome->microbatches); }},
    {.key = "microbatch_size",
     .kind = Kind::count,
     .definition = "Samples of a micro-batch",
     .null = "where the trace does not say",
     .value =
         [](const Facts& row) {
           const int size = row.outcome->microbatch_size;
           return size > 0 ? whole(size) : FigureValue();
         }},
    {.key = "sequence_chunks",
     .kind = Kind::count,
     .definition = "Ops that a micro-batch counts as, one for each piece of its sequences",
     .absent = "where sequences are not cut",
     .value = [](const Facts& row) { return whole(row.outcome->program.settings.sequence_chunks); },
     .in_json = [](const Facts& row) { return row.outcome->program.settings.sequence_chunks > 1; }},
    {.key = "steps",
     .kind = Kind::count,
     .definition = "Steps that were simulated",
     .value = [](const Facts& row) { return whole(row.outcome->program.steps); }},

    {.key = "makespan",
     .property = "makespan",
     .kind = Kind::time,
     .definition = "All the steps that were simulated",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->metrics.makespan; }},
    {.key = "step_time",
     .sweep = "step_ps",
     .property = "step_time",
     .kind = Kind::time,
     .definition = "Steady state: from the end of one step to the end of the next",
     .more = "of a given program of one flushed step, when that step is repeated",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->step_time; },
     .of_verdict = [](const Verdict& verdict) -> FigureValue { return verdict.step; },
     .column = {.title = "step", .place = 40}},
    {.key = "step_low",
     .sweep = "step_low_ps",
     .property = "step_low",
     .kind = Kind::time,
     .definition = "What the step is at least, and at most `step_high`, in 80 % of the published "
                   "runs of its class",
     .more = "tools/guide/validation.md",
     .absent = no_interval,
     .value =
         [](const Facts& row) {
           return at(row.intervals.step, &Interval::low, row.outcome->step_time);
         },
     .of_verdict =
         [](const Verdict& verdict) {
           return at(verdict.intervals.step, &Interval::low, verdict.step);
         },
     .column = {.title = "range",
                .place = 45,
                .drop = 52,
                .cell = range_cell,
                .matters = has_interval,
                .language = true}},
    {.key = "step_high",
     .sweep = "step_high_ps",
     .property = "step_high",
     .kind = Kind::time,
     .definition = "The other end of that range",
     .absent = no_interval,
     .value =
         [](const Facts& row) {
           return at(row.intervals.step, &Interval::high, row.outcome->step_time);
         },
     .of_verdict =
         [](const Verdict& verdict) {
           return at(verdict.intervals.step, &Interval::high, verdict.step);
         }},
    {.key = "step_range_of",
     .property = "step_range_of",
     .kind = Kind::name,
     .definition = "The runs that the range is of",
     .absent = no_interval,
     .value = [](const Facts& row) { return words_of(row.intervals.step); }},
    {.key = "settled",
     .kind = Kind::yes,
     .definition = "Whether that state repeats exactly",
     .more = "if not, no rounds of a long run were alike and `step_time` is a mean over many "
             "micro-batches, or a given program without flush is too short to show its pace and "
             "`step_time` is its makespan by step",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->settled; }},
    {.key = "throughput",
     .sweep = "throughput",
     .property = "throughput",
     .kind = Kind::number,
     .unit = "throughput_unit",
     .definition = "Samples of a step over its time, all devices together",
     .more = "micro-batches when the size is unknown",
     .null = no_time,
     .value = [](const Facts& row) { return if_it_takes_time(row, row.outcome->throughput); },
     .of_verdict = [](const Verdict& verdict) -> FigureValue { return verdict.throughput; },
     .column = {.title = "throughput",
                .place = 150,
                .drop = 70,
                .cell = throughput_cell,
                .matters = without_tokens}},
    {.key = "throughput_unit",
     .property = "throughput_unit",
     .kind = Kind::name,
     .definition = "Unit of the throughput",
     .value = [](const Facts& row) { return text(row.outcome->throughput_unit); }},
    {.key = "speedup",
     .property = "speedup",
     .kind = Kind::number,
     .definition =
         "Over one device that does the same step, updates included; with tp or cp over one rank, "
         "whose collectives do not count",
     .null = no_time,
     .value = [](const Facts& row) { return if_it_takes_time(row, row.outcome->speedup); },
     .column = {.title = "speed-up",
                .place = 160,
                .drop = 20,
                .words = times_words,
                .matters = without_tokens}},
    {.key = "bubble_fraction",
     .sweep = "bubble",
     .property = "bubble",
     .definition =
         "1 − busy time of all devices / (devices × step): the share of their time in which they "
         "idle",
     .more = "recomputing is busy",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->bubble_fraction; },
     .of_verdict = [](const Verdict& verdict) -> FigureValue { return verdict.bubble; },
     .column = {.title = "bubble", .place = 170, .drop = 50}},
    {.key = "recompute_fraction",
     .definition = "Share of the devices' time that runs forwards again; no part of the bubble",
     .more = "busy, but no progress",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->figures.recompute; },
     .column = {.title = "recompute",
                .place = 180,
                .drop = 40,
                .matters = [](const Facts& row) { return row.outcome->figures.recompute > 0; }}},
    {.key = "blocking_collectives_fraction",
     .definition = "Share of the devices' time in collectives inside ops: of tp, cp and ep, and "
                   "what ZeRO exchanges",
     .more = "busy; by stage in `per_stage[].blocking_collectives`",
     .absent = "without degrees",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->figures.blocking; },
     .in_json = [](const Facts& row) { return row.ranked; },
     .column = {.title = "blocking",
                .place = 190,
                .drop = 45,
                .matters = [](const Facts& row) { return row.outcome->figures.blocking > 0; }}},
    {.key = "hidden_collectives_fraction",
     .definition = "Collectives inside ops that take no time of their own, over the devices' time: "
                   "what overlapped pairs hide of the experts' exchange, and tp_overlap",
     .more = "by stage, of tp_overlap, in `per_stage[].hidden_collectives`",
     .absent = "where nothing is hidden",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->figures.hidden; },
     .in_json = [](const Facts& row) { return row.outcome->figures.hidden > 0; }},
    {.key = "exposed_communication_fraction",
     .property = "exposed_communication",
     .definition =
         "What messages and reductions beside compute add to a step: 1 − step with these free / "
         "step",
     .more = "`blocking_collectives_fraction` has the collectives inside ops",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->exposed_communication; },
     .column = {.title = "exposed comm", .place = 200, .drop = 80}},

    // In the units of those who train language models.
    {.key = "tokens_per_second",
     .kind = Kind::number,
     .unit = "tokens/s",
     .definition = "Tokens of a step over its time, all devices together",
     .absent = no_tokens,
     .value = [](const Facts& row) { return known(row.budget->rates.tokens_per_second); },
     .column = {.title = "tokens/s",
                .place = 50,
                .drop = 55,
                .words = count_text,
                .matters = with_tokens,
                .language = true}},
    {.key = "tokens_per_second_low",
     .kind = Kind::number,
     .unit = "tokens/s",
     .definition = "The same where the step is `step_high`",
     .absent = no_interval,
     .value =
         [](const Facts& row) {
           return rate_at(row, &Interval::high, row.budget->rates.tokens_per_second);
         }},
    {.key = "tokens_per_second_high",
     .kind = Kind::number,
     .unit = "tokens/s",
     .definition = "The same where the step is `step_low`",
     .absent = no_interval,
     .value =
         [](const Facts& row) {
           return rate_at(row, &Interval::low, row.budget->rates.tokens_per_second);
         }},
    {.key = "tokens_per_second_per_device",
     .kind = Kind::number,
     .unit = "tokens/s/GPU",
     .definition = "Tokens of a step over its time and the number of devices",
     .absent = no_tokens,
     .value = [](const Facts& row) { return known(row.budget->rates.tokens_per_device_second); },
     .column = {.title = "tokens/s/GPU",
                .place = 60,
                .drop = 25,
                .words = count_text,
                .matters = with_tokens,
                .language = true}},
    {.key = "model_flops",
     .kind = Kind::number,
     .unit = "FLOP",
     .definition = "Σ layers (F, I and W) × micro-batches × data-parallel replicas × ranks that "
                   "divide a layer (tp · cp), of a step of all devices",
     .absent = no_flops,
     .value = [](const Facts& row) { return known(row.budget->rates.model_flops); }},
    {.key = "hardware_flops",
     .kind = Kind::number,
     .unit = "FLOP",
     .definition = "The same with the FLOPs that R repeats",
     .more = "of a stage that is recomputed selectively those of attention (`selective_flops`), "
             "else its forward's",
     .absent = no_flops,
     .value = [](const Facts& row) { return known(row.budget->rates.hardware_flops); }},
    {.key = "flops_per_second_per_device",
     .kind = Kind::number,
     .unit = "FLOP/s/GPU",
     .definition =
         "Model FLOPs of a step (nothing recomputed) over its time and the number of devices",
     .absent = no_flops,
     .value = [](const Facts& row) { return known(row.budget->rates.flops_per_device_second); },
     .column = {.title = "TFLOP/s/GPU",
                .place = 70,
                .drop = 75,
                .words = teraflops_words,
                .matters =
                    [](const Facts& row) {
                      return row.budget->rates.flops_per_device_second.has_value();
                    },
                .language = true}},
    {.key = "mfu",
     .definition = "Model FLOPs utilization: model FLOPs of a step over what the peaks of all "
                   "devices allow in that time",
     .more = "PaLM, arXiv 2204.02311, appendix B. A device's peak is the trace's `peak_flops`; "
             "of another kind than the trace is priced for, times its `rate`",
     .absent = no_peak,
     .value = [](const Facts& row) { return known(row.budget->rates.mfu); },
     .column = {.title = "MFU",
                .place = 80,
                .drop = 5,
                .matters = [](const Facts& row) { return row.budget->rates.mfu.has_value(); },
                .language = true}},
    {.key = "mfu_low",
     .definition = "MFU where the step is `step_high`",
     .absent = no_interval,
     .value =
         [](const Facts& row) { return rate_at(row, &Interval::high, row.budget->rates.mfu); }},
    {.key = "mfu_high",
     .definition = "MFU where the step is `step_low`",
     .absent = no_interval,
     .value = [](const Facts& row) { return rate_at(row, &Interval::low, row.budget->rates.mfu); }},
    {.key = "hfu",
     .definition = "Hardware FLOPs utilization: as MFU, with the FLOPs that recomputation repeats",
     .absent = no_peak,
     .value = [](const Facts& row) { return known(row.budget->rates.hfu); },
     .column = {.title = "HFU",
                .place = 90,
                .drop = 65,
                .matters =
                    [](const Facts& row) { return row.budget->rates.hfu > row.budget->rates.mfu; },
                .language = true}},
    {.key = "idle_for_messages_fraction",
     .definition = "Idle time of all devices that `idle_by` charges to `link`, as a share of the "
                   "makespan",
     .absent = no_rates,
     .value = [](const Facts& row) -> FigureValue { return row.budget->rates.idle_for_messages; },
     .in_json = has_rates},
    {.key = "idle_for_reductions_fraction",
     .definition = "The same of `collectives`",
     .absent = no_rates,
     .value = [](const Facts& row) -> FigureValue { return row.budget->rates.idle_for_reductions; },
     .in_json = has_rates},
    {.key = "device_hours",
     .kind = Kind::number,
     .unit = "h",
     .definition = "Hours of all devices together for the tokens of --tokens",
     .absent = no_training,
     .value = [](const Facts& row) { return known(row.budget->rates.device_hours); },
     .column = {.title = "GPU-hours",
                .place = 100,
                .drop = 35,
                .words = count_text,
                .matters =
                    [](const Facts& row) { return row.budget->rates.device_hours.has_value(); },
                .language = true}},
    {.key = "days",
     .kind = Kind::number,
     .unit = "days",
     .definition = "Days that this training takes",
     .absent = no_training,
     .value = [](const Facts& row) { return known(row.budget->rates.days); }},
    {.key = "dollars",
     .kind = Kind::number,
     .unit = "US dollars",
     .definition = "Price of these hours at --price, else at the `price_per_hour` of the "
                   "devices' kinds",
     .absent = "without `--tokens`, and where a device has no price",
     .value = [](const Facts& row) { return known(row.budget->rates.dollars); }},

    // What tables have beside the keys.
    {.kind = Kind::time,
     .definition = "Quantile of the step over all scenarios",
     .value = quantile_of,
     .column =
         {.title = "p95", .place = 110, .drop = 12, .matters = has_scenarios, .seldom = true}},
    {.definition = "Share of the scenarios in which the schedule is the fastest that fits",
     .value = best_of,
     .column =
         {.title = "best", .place = 120, .drop = 14, .matters = has_scenarios, .seldom = true}},
    {.kind = Kind::number,
     .unit = "US dollars",
     .definition = "Hours of all devices at their price: of the training of --tokens, else of a "
                   "step",
     .value = cost_of,
     .column = {.title = "cost",
                .place = 130,
                .drop = 15,
                .words = dollars_text,
                .matters =
                    [](const Facts& row) { return row.budget->rates.dollars || by_price(row); },
                .seldom = true}},
    {.kind = Kind::number,
     .unit = "J",
     .definition = "Of a step: busy and idle time of all devices at their power; hosts, switches "
                   "and cooling are not counted",
     .value = [](const Facts& row) { return known(row.budget->energy.joules); },
     .column = {.title = "energy",
                .place = 140,
                .drop = 16,
                .words = joules_text,
                .matters = by_price,
                .seldom = true}},
    {.sweep = "peak_bytes",
     .kind = Kind::bytes,
     .definition = "The highest peak of any device",
     .value = highest_peak,
     .of_verdict =
         [](const Verdict& verdict) {
           return verdict.peak.empty() ? FigureValue() : FigureValue(verdict.fullest());
         }},
    {.key = "peak_low_bytes",
     .sweep = "peak_low_bytes",
     .kind = Kind::bytes,
     .definition = "What that peak is at least, and at most `peak_high_bytes`, in 80 % of the "
                   "published runs of its class",
     .absent = no_interval,
     .value = [](const Facts& row) { return peak_at(row, &Interval::low); },
     .of_verdict = [](const Verdict& verdict) { return peak_of_verdict(verdict, &Interval::low); }},
    {.key = "peak_high_bytes",
     .sweep = "peak_high_bytes",
     .kind = Kind::bytes,
     .definition = "The other end of that range",
     .absent = no_interval,
     .value = [](const Facts& row) { return peak_at(row, &Interval::high); },
     .of_verdict =
         [](const Verdict& verdict) { return peak_of_verdict(verdict, &Interval::high); }},
    {.key = "peak_range_of",
     .kind = Kind::name,
     .definition = "The runs that the range of the peak is of",
     .absent = no_interval,
     .value = [](const Facts& row) { return words_of(row.intervals.memory); }},
    {.property = "peak_memory",
     .kind = Kind::bytes,
     .definition =
         "The highest peak of any device; where it does not fit, of the device that lacks most",
     .value = [](const Facts& row) { return if_bytes_are_known(row, peak_memory(row).peak); },
     .column = {.title = "peak memory", .place = 210, .drop = 10, .unknown = "unknown"}},
    {.kind = Kind::name,
     .definition = "The device with that peak",
     .value =
         [](const Facts& row) {
           const Outcome& one = *row.outcome;
           return one.bytes_known() ? text(nth(one.program.devices, one.peak_device()))
                                    : FigureValue();
         },
     .column = {.title = "on", .place = 220, .drop = 90, .left = true}},
    {.kind = Kind::bytes,
     .definition = "Stashes on that device at its peak",
     .value =
         [](const Facts& row) {
           return if_bytes_are_known(row, nth(peak_memory(row).at_peak, MemoryKind::stash));
         },
     .column = {.title = "activations",
                .place = 230,
                .drop = 85,
                .unknown = "unknown",
                .matters = with_tokens,
                .language = true}},
    {.kind = Kind::count,
     .definition = "Most versions of its weights that any stage holds at a time",
     .value = [](const Facts& row) { return whole(row.outcome->versions_peak()); },
     .column = {.title = "versions",
                .place = 240,
                .drop = 60,
                .matters =
                    [](const Facts& row) {
                      return !row.has_tokens() || row.outcome->versions_peak() > 1;
                    }}},
    {.property = "staleness",
     .kind = Kind::number,
     .unit = "updates",
     .definition = "Updates between the weights that a micro-batch reads and those that its "
                   "gradient changes, at most; F≠B: a backward reads other weights than its "
                   "forward",
     .value = [](const Facts& row) -> FigureValue { return row.outcome->staleness_max(); },
     .column = {.title = "staleness",
                .place = 250,
                .drop = 30,
                .cell = staleness_cell,
                .matters =
                    [](const Facts& row) {
                      return !row.has_tokens() || row.outcome->staleness_max() > 0 ||
                             !row.outcome->consistent();
                    }}},
    {.key = "fits",
     .sweep = "fits",
     .property = "fits",
     .kind = Kind::name,
     .definition = "Whether every peak is within the memory of its device; unknown without "
                   "--memory or --cluster",
     .more = "yes, no, unknown",
     .value = [](const Facts& row) { return text(name(row.outcome->fit)); },
     .of_verdict = [](const Verdict& verdict) { return text(name(verdict.fit)); },
     .column = {.title = "fits", .place = 260, .left = true, .cell = fit_cell}},
};

std::string_view name(FigureKind kind) {
  switch (kind) {
    case Kind::yes:
      return "yes or no";
    case Kind::count:
      return "a count";
    case Kind::share:
      return "a share";
    case Kind::number:
      return "a factor";
    case Kind::time:
      return "a time";
    case Kind::bytes:
      return "bytes";
    case Kind::name:
      return "a name";
  }
  return "";
}

// "`step_time`", "–".
std::string code(std::string_view name, std::string_view behind = "") {
  return name.empty() ? "–" : fmt::format("`{}{}`", name, behind);
}

std::string unit_words(const FigureRow& figure) {
  const std::string_view unit = figure.unit;
  if (unit == "throughput_unit") return "`throughput_unit`";
  return std::string(unit.empty() ? name(figure.kind) : unit);
}

std::string definition_words(const FigureRow& figure) {
  std::string words = figure.definition;
  const auto add = [&](const char* before, const char* after) {
    if (*after != '\0') words += fmt::format("; {}{}", before, after);
  };
  add("", figure.more);
  add("null ", figure.null);
  add("absent ", figure.absent);
  return words;
}

}  // namespace

FigureFacts facts_of(const Case& asked, const Outcome& outcome, const BudgetFigures& budget) {
  return {&outcome,
          &budget,
          &asked.model,
          &asked.cluster,
          asked.cut_asked(),
          asked.device_count(),
          asked.ranked != nullptr,
          {},
          nullptr,
          intervals_of(asked.model, asked.ranked.get())};
}

FigureFacts facts_of(const Row& row) {
  return {&*row.outcome,
          &row.figures,
          &row.asked.model(),
          &row.asked.cluster(),
          row.asked.cut_asked(),
          row.asked.device_count(),
          row.asked.is_ranked(),
          {},
          nullptr,
          intervals_of(row.asked.model(), row.asked.ranked())};
}

std::span<const FigureRow> all_figures() { return figures; }

const std::vector<const FigureRow*>& figures_of_columns() {
  static const std::vector<const FigureRow*> columns = [] {
    std::vector<const FigureRow*> found;
    for (const FigureRow& figure : all_figures()) {
      if (*figure.column.title != '\0') found.push_back(&figure);
    }
    std::sort(found.begin(), found.end(), [](const FigureRow* a, const FigureRow* b) {
      return a->column.place < b->column.place;
    });
    return found;
  }();
  return columns;
}

const FigureRow& figure_of_property(std::string_view property) {
  for (const FigureRow& figure : all_figures()) {
    if (figure.property == property) return figure;
  }
  throw std::logic_error(fmt::format("no figure has the property {}", property));
}

std::string unit_of(const FigureRow& figure, const FigureFacts& row) {
  const std::string unit = figure.unit;
  return unit == "throughput_unit" ? row.outcome->throughput_unit : unit;
}

std::string figures_page() {
  std::string page = "| key | what | is | column | `sweep` | Python |\n|---|---|---|---|---|---|\n";
  for (const FigureRow& figure : all_figures()) {
    page += fmt::format("| {} | {} | {} | {} | {} | {} |\n", code(figure.key),
                        definition_words(figure), unit_words(figure), code(figure.column.title),
                        code(figure.sweep), code(figure.property));
  }
  return page;
}

}  // namespace stageline::report
