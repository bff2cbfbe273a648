#include "tools/study/figures/contradictions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/fair/shortest.hpp"
#include "sim/rates.hpp"

namespace stageline {
namespace {

constexpr double ratio_rounding = 1e-9;  // of a ratio of exact integers

std::string shown(Time time) { return print(time); }
std::string shown(Bytes bytes) { return print(bytes); }
std::string shown(Op op) { return print(op); }
template <class Other>
const Other& shown(const Other& other) {
  return other;
}

// Collects the broken rules of one answer. Numbers are spelled only where a rule is broken.
class Findings {
 public:
  template <class... Numbers>
  void require(bool holds, std::string_view rule, const Numbers&... numbers) {
    if (!holds) found_.push_back(fmt::format(fmt::runtime(rule), shown(numbers)...));
  }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

bool is_share(double value) { return value >= 0 && value <= 1; }

void check_devices(const Outcome& outcome, Findings& findings) {
  const Metrics& metrics = outcome.metrics;
  for (std::size_t d = 0; d < metrics.device.size(); ++d) {
    const DeviceMetrics& device = metrics.device[d];
    const std::string& name = outcome.program.devices[d];
    Time causes{};
    for (const Time idle : device.idle_by) {
      causes += idle;
      findings.require(idle >= Time{}, "{} idles {} by one cause", name, idle);
    }
    findings.require(causes == device.idle, "{} idles {}, but the causes add up to {}", name,
                     device.idle, causes);
    findings.require(device.busy >= Time{} && device.busy + device.idle == metrics.makespan,
                     "{} is busy {} and idle {} of a makespan of {}", name, device.busy,
                     device.idle, metrics.makespan);
    findings.require(device.span_idle >= Time{} && device.span_idle <= device.idle,
                     "{} idles {} within its span, but {} in all", name, device.span_idle,
                     device.idle);
  }
  for (const IdleInterval& idle : metrics.idle) {
    findings.require(Time{} <= idle.start && idle.start < idle.end && idle.end <= metrics.makespan,
                     "an idle interval lasts from {} to {}", idle.start, idle.end);
  }
  Time at{};
  for (const PathPiece& piece : outcome.critical_path) {
    findings.require(piece.start == at && piece.end >= at,
                     "the critical path reaches {} and goes on at {}", at, piece.start);
    at = piece.end;
  }
  findings.require(at == metrics.makespan, "the critical path takes {} of a makespan of {}", at,
                   metrics.makespan);
}

// A replica's lane need not do an equal share of a program that ends in the middle of a round.
bool is_replicated(const Program& program) {
  const auto& stages = program.placement.stage;
  return std::any_of(stages.begin(), stages.end(),
                     [](const StagePlace& place) { return place.replicas.size() > 1; });
}

void check_pace(const Outcome& outcome, Findings& findings) {
  const TaskGraph& graph = outcome.graph;
  std::vector<Time> lane(graph.lanes.size());
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    findings.require(graph.duration[task] >= Time{}, "{} takes {}", graph.op[task],
                     graph.duration[task]);
    lane[graph.lane[task]] += shortest(graph, task);
  }
  // Without flushes, the first and the last micro-batch may have messages that those between do not
  // have: up to as many as another micro-batch's.
  const std::int64_t all = std::max(outcome.program.total_microbatches(), 1U);
  const bool flushes = outcome.synchrony == Synchrony::synchronous;
  const std::int64_t steady = flushes ? all : std::max<std::int64_t>(all - 2, 0);
  for (std::size_t l = 0; l < lane.size() && !is_replicated(outcome.program); ++l) {
    const Time in_a_step = lane[l] / all * steady / outcome.program.steps;
    findings.require(outcome.step_time >= in_a_step,
                     "a step takes {}, but the {} lane of {} works {} in it", outcome.step_time,
                     name(graph.lanes[l].kind), nth(outcome.program.devices, graph.lanes[l].device),
                     in_a_step);
  }
  findings.require(outcome.step_time >= Time{}, "a step takes {}", outcome.step_time);
  if (outcome.step_time == Time{}) return;
  const double step = to_seconds(outcome.step_time);
  const double samples =
      outcome.copies *
      (outcome.microbatches * static_cast<double>(std::max(outcome.microbatch_size, 1)));
  findings.require(std::abs(outcome.throughput * step / samples - 1) < ratio_rounding,
                   "{} samples in {} are not {:.9g} a second", samples, outcome.step_time,
                   outcome.throughput);
  findings.require(is_share(outcome.bubble_fraction), "the bubble is {:.6g} of the step",
                   outcome.bubble_fraction);
  const double recompute = outcome.figures.recompute;
  findings.require(recompute >= 0 && outcome.bubble_fraction + recompute <= 1 + ratio_rounding,
                   "the bubble is {:.6g} of the step, and recomputing {:.6g}",
                   outcome.bubble_fraction, recompute);
  findings.require(is_share(outcome.exposed_communication),
                   "exposed communication is {:.6g} of the step", outcome.exposed_communication);
}

// In a step of time T, a device d does at most T · max(m_d / m, a_d / a) of what takes one device
// of memory rate m and arithmetic rate a so long: the larger factor of the two classes. So no
// speed-up over that one device is above the sum of these factors, nor one over the fastest, which
// takes no longer. The least such sum over the kinds of devices.
double most_speedup(const Cluster& cluster) {
  std::vector<std::pair<Rates, double>> kinds;  // and how many there are
  for (const Device& device : cluster.devices) {
    const Rates rates = rates_of(device);
    const auto known = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind.first == rates; });
    if (known == kinds.end()) {
      kinds.emplace_back(rates, 1);
    } else {
      ++known->second;
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (const auto& one : kinds) {
    double sum = 0;
    for (const auto& [rates, count] : kinds) {
      const double factor =
          std::max(rates.matrix / one.first.matrix, rates.memory / one.first.memory);
      sum += count * factor;
    }
    least = std::min(least, sum);
  }
  return least;
}

void check_speedup(const Case& asked, const Outcome& outcome, Findings& findings) {
  findings.require(outcome.speedup >= 0 && std::isfinite(outcome.speedup), "the speed-up is {:g}",
                   outcome.speedup);
  if (outcome.step_time == Time{}) return;
  if (outcome.figures.has_pairs && outcome.costs.pairs_hide()) return;  // pairs take less
  const double most = most_speedup(asked.cluster) * outcome.copies;
  // Each task's time is rounded to a picosecond, once for its layers and once for its rate.
  const double tasks = 2.0 * static_cast<double>(outcome.graph.tasks());
  const double slack = 1e-12 * tasks / to_seconds(outcome.step_time);
  findings.require(outcome.speedup <= most * (1 + ratio_rounding) + slack,
                   "the speed-up is {:.6g} on devices as fast as {:.6g} of the fastest one",
                   outcome.speedup, most);
}

void check_memory(const Outcome& outcome, Findings& findings) {
  std::vector<Bytes> weights(outcome.memory.device.size());
  for (std::size_t s = 0; s < outcome.costs.stage.size(); ++s) {
    for (const int device : outcome.program.placement.stage[s].replicas) {
      nth(weights, device) += outcome.costs.stage[s].weights;
    }
  }
  for (std::size_t d = 0; d < outcome.memory.device.size(); ++d) {
    const DeviceMemory& device = outcome.memory.device[d];
    const std::string& name = outcome.program.devices[d];
    for (int kind = 0; kind < memory_kinds; ++kind) {
      const auto k = as_size(kind);
      findings.require(device.at_peak[k] >= Bytes{} && device.at_end[k] >= Bytes{},
                       "{} holds {} B of {}", name,
                       std::min(device.at_peak[k], device.at_end[k]).count,
                       stageline::name(static_cast<MemoryKind>(kind)));
    }
    findings.require(total(device.at_peak) == device.peak,
                     "the peak of {} is {}, but its kinds add up to {}", name, device.peak,
                     total(device.at_peak));
    Bytes stash{};
    for (const Bytes part : device.stash_at_peak) {
      findings.require(part >= Bytes{}, "{} holds {} B of a part of its stash", name, part.count);
      stash += part;
    }
    findings.require(stash == nth(device.at_peak, MemoryKind::stash),
                     "the stash of {} is {} at its peak, but its parts add up to {}", name,
                     nth(device.at_peak, MemoryKind::stash), stash);
    findings.require(device.peak >= weights[d] && device.peak >= total(device.at_end),
                     "{} peaks at {}, below its weights of {}", name, device.peak, weights[d]);
    findings.require(device.peak_at >= Time{} && device.peak_at <= outcome.metrics.makespan,
                     "{} peaks at {} of {}", name, device.peak_at, outcome.metrics.makespan);
    const auto& limit = outcome.memory_limit[d];
    findings.require(!limit || outcome.fit == Fit::no || device.peak <= *limit,
                     "{} holds {} of {}, which does not fit", name, device.peak,
                     limit.value_or(Bytes{}));
  }
}

void check_versions(const Outcome& outcome, Findings& findings) {
  for (std::size_t s = 0; s < outcome.versions.size(); ++s) {
    const StageVersions& stage = outcome.versions[s];
    findings.require(stage.staleness_min >= 0 &&
                         stage.staleness_min <= stage.staleness_mean + ratio_rounding &&
                         stage.staleness_mean <= stage.staleness_max + ratio_rounding,
                     "the staleness of stage {} is from {:g} by {:g} to {:g}", s,
                     stage.staleness_min, stage.staleness_mean, stage.staleness_max);
    findings.require(stage.held_peak >= 1, "stage {} holds {} versions", s, stage.held_peak);
    if (outcome.program.settings.weights != WeightRule::flush) continue;
    findings.require(stage.staleness_max == 0 && stage.consistent && stage.held_peak == 1,
                     "stage {} is flushed, but {:g} updates stale", s, stage.staleness_max);
  }
}

}  // namespace

std::vector<std::string> contradictions(const Case& asked, const Outcome& outcome) {
  Findings findings;
  check_devices(outcome, findings);
  check_pace(outcome, findings);
  check_speedup(asked, outcome, findings);
  check_memory(outcome, findings);
  check_versions(outcome, findings);
  return findings.take();
}

void check_answer(const Case& asked, const Outcome& outcome) {
  const std::vector<std::string> found = contradictions(asked, outcome);
  if (found.empty()) return;
  throw ContradictionError(fmt::format(
      "the answer for {} contradicts itself, which is a defect of Stageline, not of the input: {}",
      outcome.schedule, found.front()));
}

}  // namespace stageline
