// Draws by position. The counter of Philox is (task, group of four scenarios, stream), its key the
// seed, so each of the four words belongs to one scenario.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cost_models/perturbation/elementary.hpp"
#include "cost_models/perturbation/normal.hpp"
#include "cost_models/perturbation/perturbation.hpp"
#include "sim/batch/philox.hpp"
#include "sim/errors.hpp"
#include "sim/index.hpp"
#include "sim/program.hpp"

namespace stageline {
namespace {

// What a number is for: numbers of different streams are independent.
enum class Stream : std::uint32_t { jitter, slow, pause };

constexpr std::size_t group = 4;  // words of one counter

PhiloxCounter drawn(std::uint64_t seed, Stream stream, std::uint32_t item, std::uint64_t at) {
  return philox({item, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32U),
                 static_cast<std::uint32_t>(stream)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
}

// σ of the logarithm of a log-normal law with that standard deviation over its mean.
double log_deviation(double variation) { return std::sqrt(portable_log1p(variation * variation)); }

constexpr std::int64_t most = longest_run.count();

std::int64_t scaled(std::int64_t duration, double factor) {
  if (factor == 1) return duration;
  return std::llround(std::min(static_cast<double>(duration) * factor, static_cast<double>(most)));
}

}  // namespace

Scenarios::Scenarios(const TaskGraph& graph, const Perturbation& perturbation,
                     std::uint32_t microbatches, StageVariation variation)
    : graph_(graph),
      perturbation_(perturbation),
      variation_(std::move(variation)),
      microbatches_(microbatches),
      jitters_(graph.tasks()),
      log_deviation_(graph.tasks()) {
  const Jitter& jitter = perturbation_.jitter;
  if (jitter.law == Jitter::Law::measured && variation_.empty()) {
    throw UsageError(
        "--jitter measured: the trace states no spread of its layers' times; give a coefficient of "
        "variation (--jitter 5%)");
  }
  const double everywhere = log_deviation(jitter.variation);
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> first;  // by device and step
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    const Lane& lane = graph.lanes[graph.lane[task]];
    const bool computes = lane.kind == LaneKind::compute;
    jitters_[task] = jitter.law != Jitter::Law::none && (computes || jitter.transfers);
    if (jitter.law == Jitter::Law::log_normal) log_deviation_[task] = everywhere;
    if (jitter.law == Jitter::Law::measured) {
      // What was not measured, as messages, does not jitter.
      log_deviation_[task] = log_deviation(variation_[op.stage][static_cast<std::size_t>(op.kind)]);
    }
    if (computes && counts_microbatches(op.kind)) {
      first.emplace(std::pair(lane.device, op.microbatch / microbatches_), task);
    }
  }
  for (std::size_t item = 0; item < perturbation_.slow.size(); ++item) add_slow(item);
  if (perturbation_.pauses.empty()) return;
  for (const auto& [where, task] : first) first_op_.push_back(task);
}

void Scenarios::add_slow(std::size_t item) {
  const std::string& name = perturbation_.slow[item].name;
  SlowTasks found{item, {}};
  std::vector<int> devices = perturbation_.slow[item].devices;
  const auto device = std::find(graph_.devices.begin(), graph_.devices.end(), name);
  if (devices.empty() && device != graph_.devices.end()) {
    devices.push_back(static_cast<int>(device - graph_.devices.begin()));
  }
  const auto resource = std::find(graph_.resources.begin(), graph_.resources.end(), name);
  if (devices.empty() && resource == graph_.resources.end() && name != "links") {
    std::vector<std::string> known = graph_.devices;
    known.insert(known.end(), graph_.resources.begin(), graph_.resources.end());
    known.emplace_back("links");
    throw UsageError(
        fmt::format("nothing is called '{}' that could be slow: devices, links, or "
                    "\"links\" for all{}",
                    name, did_you_mean(name, known)));
  }
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    const Lane& lane = graph_.lanes[graph_.lane[task]];
    const bool computes = lane.kind == LaneKind::compute;
    const auto& resources = graph_.paths[graph_.path_of[task]].resources;
    const bool is =
        !devices.empty()
            ? computes && std::find(devices.begin(), devices.end(), lane.device) != devices.end()
        : resource != graph_.resources.end()
            ? std::find(resources.begin(), resources.end(),
                        static_cast<std::uint32_t>(resource - graph_.resources.begin())) !=
                  resources.end()
            : !computes;
    if (is) found.tasks.push_back(task);
  }
  slow_.push_back(std::move(found));
}

void Scenarios::jitter_block(std::uint32_t task, const Words& words, std::size_t count,
                             std::int64_t* out) const {
  const auto nominal = static_cast<double>(graph_.duration[task].count());
  std::array<double, factor_block> factors{};
  if (perturbation_.jitter.law == Jitter::Law::samples) {
    const auto& samples = perturbation_.jitter.samples;
    for (std::size_t i = 0; i < count; ++i) {
      factors[i] =
          samples[static_cast<std::size_t>((std::uint64_t{words[i]} * samples.size()) >> 32U)];
    }
  } else {
    log_normal_factors(words, log_deviation_[task], factors);
  }
  for (std::size_t i = 0; i < count; ++i) {
    // Half a picosecond up: llround would be a call, and keep the loop from vector code.
    const double shifted = std::min(nominal * factors[i] + 0.5, static_cast<double>(most));
    out[i] = static_cast<std::int64_t>(shifted);
  }
}

void Scenarios::draw(std::uint64_t first, std::size_t scenarios,
                     std::span<std::int64_t> duration) const {
  const std::uint64_t seed = perturbation_.seed;
  for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
    std::int64_t* const out = duration.data() + task * scenarios;
    const std::int64_t nominal = graph_.duration[task].count();
    const bool same = perturbation_.jitter.law != Jitter::Law::samples && log_deviation_[task] == 0;
    if (!jitters_[task] || nominal == 0 || same) {
      std::fill(out, out + scenarios, nominal);
      continue;
    }
    for (std::size_t k = 0; k < scenarios; k += factor_block) {
      const std::size_t count = std::min(factor_block, scenarios - k);
      Words words{};
      for (std::size_t i = 0; i < count; i += group) {
        const PhiloxCounter four = drawn(seed, Stream::jitter, task, (first + k + i) / group);
        std::copy(four.begin(), four.end(), words.begin() + static_cast<std::ptrdiff_t>(i));
      }
      jitter_block(task, words, count, out + k);
    }
  }
  for (const SlowTasks& slow : slow_) {
    const Slow& item = perturbation_.slow[slow.item];
    for (std::size_t k = 0; k < scenarios; ++k) {
      const PhiloxCounter words =
          drawn(seed, Stream::slow, static_cast<std::uint32_t>(slow.item), (first + k) / group);
      if (uniform_of(words[(first + k) % group]) >= item.probability) continue;
      for (const std::uint32_t task : slow.tasks) {
        std::int64_t& time = duration[task * scenarios + k];
        time = scaled(time, item.factor);
      }
    }
  }
  for (std::size_t p = 0; p < perturbation_.pauses.size(); ++p) {
    const Pause& pause = perturbation_.pauses[p];
    for (std::size_t place = 0; place < first_op_.size(); ++place) {
      const auto item = static_cast<std::uint32_t>(p * first_op_.size() + place);
      for (std::size_t k = 0; k < scenarios; k += group) {
        const PhiloxCounter words = drawn(seed, Stream::pause, item, (first + k) / group);
        for (std::size_t i = 0; i < group; ++i) {
          if (uniform_of(words[i]) * pause.every >= 1) continue;
          std::int64_t& time = duration[first_op_[place] * scenarios + k + i];
          time += std::min(pause.time.count(), most - time);
        }
      }
    }
  }
}

}  // namespace stageline
