// Predicts measured cases and computes their errors.
#include "tools/lab/evidence/judge.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>

#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/inputs/case_slices.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"

namespace stageline::lab {
namespace {

// The first devices of the evidence's cluster, with a port of `link` and a host link each.
Cluster cluster_of(const Evidence& evidence, const MeasuredCase& measured) {
  const int devices = static_cast<int>(measured.devices.size());
  Cluster cluster = first_devices(evidence.cluster, devices);
  if (measured.link.empty() && measured.host_link.empty()) return cluster;
  if (!cluster.links.empty() || !cluster.switches.empty()) {
    throw UsageError("the case has a link, so the evidence's cluster must have none");
  }
  if (!cluster.hosts.empty()) {
    throw UsageError("the case has a link, so the evidence's cluster must have no hosts");
  }
  const auto link_called = [](const std::string& text, const std::string& flag) {
    return text.empty() ? std::nullopt : std::optional(parse_link(text, flag));
  };
  const Cluster ports = uniform_cluster(devices, link_called(measured.link, "--link"), std::nullopt,
                                        link_called(measured.host_link, "--host-link"));
  cluster.hosts = ports.hosts;
  cluster.switches = ports.switches;
  cluster.links = ports.links;
  for (std::size_t d = 0; d < ports.devices.size(); ++d) {
    cluster.devices[d].host = ports.devices[d].host;
  }
  return cluster;
}

PredictedDevice device_of(const Outcome& outcome, int device) {
  const auto d = as_size(device);
  PredictedDevice predicted;
  predicted.busy = outcome.metrics.device[d].busy;
  predicted.idle = outcome.metrics.device[d].idle;
  for (const Span& span : outcome.timeline.lane(device, LaneKind::send)) {
    if (is_send(span.op.kind)) predicted.transfer += span.end - span.start;
  }
  predicted.peak = outcome.memory.device[d].peak;
  predicted.stash = outcome.memory.device[d].stash_peak;
  return predicted;
}

// Whether both have the same ops on every lane, at whatever times.
bool same_ops(const Timeline& a, const Timeline& b) {
  const auto ops_of = [](const Spans& spans) {
    std::vector<Op> ops;
    for (const Span& span : spans) ops.push_back(span.op);
    std::sort(ops.begin(), ops.end());
    return ops;
  };
  return std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(),
                    [&](const Spans& x, const Spans& y) { return ops_of(x) == ops_of(y); });
}

// On the clock of the counted run.
void set_counted(const MeasuredCase& measured, const Outcome& outcome,
                 std::vector<PredictedDevice>& devices) {
  if (measured.counted && !same_ops(*measured.counted, outcome.timeline)) {
    throw UsageError("its counted timeline has other ops than its program");
  }
  const Timeline& timeline = measured.counted ? *measured.counted : outcome.timeline;
  const std::vector<PeakRange> peaks = peak_ranges(outcome.program, outcome.costs, timeline);
  std::optional<MemoryProfile> memory;
  if (measured.counted) {
    memory = memory_of(outcome.program, outcome.costs, timeline, Curves::all);
  }
  for (std::size_t d = 0; d < devices.size(); ++d) {
    devices[d].counted_peak = peaks[d];
    devices[d].counted_stash = memory ? memory->device[d].stash_peak : devices[d].stash;
  }
}

// Keeps the value that is furthest from 0, and the index of its case.
template <class Value>
void keep_furthest(Value value, int device, Value& furthest, int& of) {
  const auto size = [](Value v) { return v < Value{} ? Value{} - v : v; };
  if (device != 0 && !(size(furthest) < size(value))) return;
  furthest = value;
  of = device;
}

double share_of(Bytes part, Bytes whole) {
  return static_cast<double>(part.count) / static_cast<double>(whole.count);
}

// The lower of the middle ones of an even number.
Bytes median_of(std::vector<Bytes> peaks) {
  std::sort(peaks.begin(), peaks.end());
  return peaks[(peaks.size() - 1) / 2];
}

// How far it is below the least, or above the most.
Bytes beyond(Bytes predicted, const std::vector<Bytes>& runs) {
  const auto [least, most] = std::minmax_element(runs.begin(), runs.end());
  if (predicted < *least) return predicted - *least;
  return *most < predicted ? predicted - *most : Bytes{};
}

// From the run that it is nearest to.
Bytes off_nearest(Bytes predicted, const std::vector<Bytes>& runs) {
  Bytes least = predicted - runs.front();
  for (const Bytes run : runs) {
    const Bytes off = predicted - run;
    if (std::abs(off.count) < std::abs(least.count)) least = off;
  }
  return least;
}

void judge_memory(const MeasuredCase& measured, CaseJudgement& result) {
  const bool memory =
      std::all_of(measured.devices.begin(), measured.devices.end(),
                  [](const MeasuredDevice& d) { return !d.peaks.empty() && !d.stashes.empty(); });
  if (!memory || measured.devices.empty()) return;
  double peak = 0;
  double beyond_runs = 0;
  Bytes stash{};
  int furthest_beyond = 0;
  double counted_peak = 0;
  Bytes counted_stash{};
  int furthest_counted = 0;
  for (std::size_t d = 0; d < measured.devices.size(); ++d) {
    const MeasuredDevice& is = measured.devices[d];
    const PredictedDevice& predicted = result.prediction.devices[d];
    const int device = static_cast<int>(d);
    const Bytes typical = median_of(is.peaks);
    keep_furthest(share_of(predicted.peak - typical, typical), device, peak, result.peak_device);
    keep_furthest(share_of(beyond(predicted.peak, is.peaks), typical), device, beyond_runs,
                  furthest_beyond);
    keep_furthest(off_nearest(predicted.stash, is.stashes), device, stash, result.stash_device);
    const Bytes counted = is.peaks.front();
    keep_furthest(
        share_of(std::clamp(counted, predicted.counted_peak.least, predicted.counted_peak.most) -
                     counted,
                 counted),
        device, counted_peak, furthest_counted);
    keep_furthest(predicted.counted_stash - is.stashes.front(), device, counted_stash,
                  furthest_counted);
  }
  result.peak_error = peak;
  result.peak_beyond_runs = beyond_runs;
  result.stash_error = stash;
  result.counted_peak_error = counted_peak;
  result.counted_stash_error = counted_stash;
}

void check_runs(const MeasuredCase& measured) {
  const std::size_t runs = measured.makespan.size();
  for (const MeasuredDevice& device : measured.devices) {
    if (runs > 0 && device.busy.size() == runs && device.transfer.size() == runs) continue;
    throw UsageError(fmt::format(
        "{}: there must be a time for each run (makespans {}, busy times {}, transfer times {})",
        name_of(measured), runs, device.busy.size(), device.transfer.size()));
  }
}

CaseJudgement judge_case(const Evidence& evidence, const MeasuredCase& measured) {
  check_runs(measured);
  CaseJudgement result;
  result.prediction = predict(evidence, measured);
  result.measured = median(measured.makespan);
  result.spread = half_interquartile(measured.makespan);
  result.noise = noise_of(measured.makespan);
  result.error = fraction_of(result.prediction.makespan - result.measured, result.measured);
  for (std::size_t d = 0; d < measured.devices.size(); ++d) {
    const MeasuredDevice& is = measured.devices[d];
    const PredictedDevice& predicted = result.prediction.devices[d];
    std::vector<Time> idle = measured.makespan;
    for (std::size_t run = 0; run < idle.size(); ++run) idle[run] -= is.busy[run];
    const int device = static_cast<int>(d);
    keep_furthest(fraction_of(predicted.idle - median(idle), result.measured), device,
                  result.idle_error, result.idle_device);
    if (result.idle_device == device) {
      const std::optional<Time> noise = noise_of(idle);
      result.idle_noise =
          noise ? std::optional(fraction_of(*noise, result.measured)) : std::nullopt;
    }
    keep_furthest(fraction_of(predicted.transfer - median(is.transfer), result.measured), device,
                  result.transfer_error, result.transfer_device);
  }
  judge_memory(measured, result);
  return result;
}

// Gradients of keys and values, each as wide as the output of its attention, wait from the later
// slices' backward for that of their own.
void add_waiting_gradients(std::vector<Model>& slices) {
  for (std::size_t i = 0; i < slices.front().layers.size(); ++i) {
    if (slices.front().layers[i].kind != "attention") continue;
    Bytes found{};
    for (Model& slice : slices) {
      Layer& layer = slice.layers[i];
      const bool last = &slice == &slices.back();
      const Bytes left = found;
      found += layer.output * 2;
      layer.earlier_gradients = last ? left : left - found;
    }
  }
}

void take_parts(const Evidence& evidence, const MeasuredCase& measured, Case& asked) {
  if (measured.lengths.empty()) return;
  std::vector<Model> kinds;
  std::map<TokenPart, std::uint16_t> known;
  for (const TokenPart part : parts_of(measured)) {
    const auto [kind, is_new] = known.try_emplace(part, static_cast<std::uint16_t>(kinds.size()));
    asked.kind_of.push_back(kind->second);
    if (is_new) kinds.push_back(trace_of(evidence, measured, part));
  }
  if (cuts_sequences(measured)) add_waiting_gradients(kinds);
  for (Model& kind : kinds) asked.kinds.push_back(std::make_shared<const Model>(std::move(kind)));
  if (cuts_sequences(measured)) asked.slice = asked.kinds.front();
}

}  // namespace

std::vector<TokenPart> parts_of(const MeasuredCase& measured) {
  std::vector<TokenPart> parts;
  std::int64_t begin = 0;
  const bool slices = cuts_sequences(measured);
  for (const std::int64_t tokens : measured.lengths) {
    parts.push_back({begin, tokens});
    if (slices) begin += tokens;
  }
  return parts;
}

std::string part_name(const std::string& model, TokenPart part) {
  return fmt::format("{}, tokens {} to {}", model, part.begin, part.begin + part.tokens - 1);
}

bool cuts_sequences(const MeasuredCase& measured) {
  Case asked;
  asked.spec = parse_schedules(measured.schedule).at(0);
  return slices_in(asked) > 1;
}

Case case_of(const Evidence& evidence, const MeasuredCase& measured) {
  const std::vector<ScheduleSpec> specs = parse_schedules(measured.schedule);
  if (specs.size() != 1) {
    throw UsageError(
        fmt::format("a case has one schedule (\"{}\" are {})", measured.schedule, specs.size()));
  }
  Case asked;
  asked.model = trace_of(evidence, measured);
  asked.cluster = cluster_of(evidence, measured);
  asked.spec = specs[0];
  asked.partition = measured.partition;
  asked.microbatches = measured.microbatches;
  asked.steps = measured.steps;
  if (!measured.program.empty()) asked.program = parse_program(measured.program);
  take_parts(evidence, measured, asked);
  return asked;
}

void drop_derived_programs(Evidence& evidence) {
  for (MeasuredCase& measured : evidence.cases) {
    if (measured.program.empty()) continue;
    MeasuredCase derived = measured;
    derived.program.clear();
    if (parse_schedules(measured.schedule).at(0).scheduler->assign != nullptr) {
      derived.partition = "balanced";  // it cuts the model itself
    }
    try {
      const Outcome ran = study(case_of(evidence, measured));
      const Outcome made = study(case_of(evidence, derived));
      const bool alike = made.program == ran.program &&
                         made.plan.partition.stage_of == ran.plan.partition.stage_of;
      if (alike) measured = std::move(derived);
    } catch (const UsageError&) {  // these traces make none
    }
  }
}

Prediction predict(const Evidence& evidence, const MeasuredCase& measured) {
  try {
    const Outcome outcome = study(case_of(evidence, measured), Curves::all);
    Prediction prediction{outcome.metrics.makespan, {}, outcome.timeline};
    for (int device = 0; device < outcome.devices; ++device) {
      prediction.devices.push_back(device_of(outcome, device));
    }
    set_counted(measured, outcome, prediction.devices);
    return prediction;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", name_of(measured), error.what()));
  }
}

bool counted_as_predicted(const Evidence& evidence, const MeasuredCase& measured) {
  CaseJudgement judged;
  judged.prediction = predict(evidence, measured);
  judge_memory(measured, judged);
  return std::abs(judged.counted_peak_error.value_or(0)) <= aim_peak_error &&
         judged.counted_stash_error.value_or(Bytes{}) == Bytes{};
}

std::string name_of(const MeasuredCase& measured) {
  std::string name = fmt::format("{} batch {}, {}, {} micro-batches", measured.model,
                                 measured.batch, measured.schedule, measured.microbatches);
  if (measured.steps > 1) name += fmt::format(" × {} steps", measured.steps);
  if (measured.partition != "balanced") name += ", cut " + measured.partition;
  if (!measured.link.empty()) name += ", link " + measured.link;
  if (!measured.host_link.empty()) name += ", host link " + measured.host_link;
  if (!measured.lengths.empty()) {
    name += fmt::format(", {} tokens", fmt::join(measured.lengths, ","));
  }
  return name;
}

std::optional<Time> noise_of(const std::vector<Time>& runs) {
  if (runs.size() < 3) return std::nullopt;
  std::vector<Time> odd;
  std::vector<Time> even;
  for (std::size_t i = 0; i < runs.size(); ++i) (i % 2 == 0 ? odd : even).push_back(runs[i]);
  const Time halves = median(odd) - median(even);
  const double errors = 3.72 / std::sqrt(static_cast<double>(runs.size())) *
                        static_cast<double>(half_interquartile(runs).count());
  return std::max(halves < Time{} ? -halves : halves, Time{std::llround(errors)});
}

double beyond_noise(const CaseJudgement& judged) {
  const double noise = judged.noise ? fraction_of(*judged.noise, judged.measured) : 0;
  const double left = std::max(std::abs(judged.error) - noise, 0.0);
  return judged.error < 0 ? -left : left;
}

EvidenceJudgement judge(const Evidence& evidence, const Progress& progress,
                        const std::atomic<bool>* stop) {
  EvidenceJudgement judgement;
  std::vector<std::size_t> held_out;
  std::vector<std::size_t> calibrated;
  ProgressCount done(progress, static_cast<std::int64_t>(evidence.cases.size()));
  for (std::size_t i = 0; i < evidence.cases.size(); ++i) {
    if (stop != nullptr && *stop) break;
    const MeasuredCase& measured = evidence.cases[i];
    judgement.cases.push_back(judge_case(evidence, measured));
    done.add(1);
    (measured.held_out ? held_out : calibrated).push_back(i);
  }
  judgement.held_out = summary_of(evidence, judgement.cases, std::move(held_out));
  judgement.calibrated = summary_of(evidence, judgement.cases, std::move(calibrated));
  return judgement;
}

}  // namespace stageline::lab
