// Draws by position. The counter of Philox is (task, group of four scenarios, stream and member),
// its key the seed, so each of the four words belongs to one scenario.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cost_models/perturbation/elementary.hpp"
#include "cost_models/perturbation/normal.hpp"
#include "cost_models/perturbation/perturbation.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/batch/philox.hpp"
#include "sim/program.hpp"

namespace stageline {
namespace {

// What a number is for: numbers of different streams are independent.
enum class Stream : std::uint32_t { jitter, slow, pause };

constexpr std::size_t group = 4;  // words of one counter

// `member`: of the devices that draw for the same item; the first is that of an item of one device.
PhiloxCounter drawn(std::uint64_t seed, Stream stream, std::uint32_t item, std::uint64_t at,
                    std::uint32_t member = 0) {
  return philox({item, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32U),
                 static_cast<std::uint32_t>(stream) | member << 8U},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
}

// σ of the logarithm of a log-normal law with that standard deviation over its mean.
double log_deviation(double variation) { return std::sqrt(portable_log1p(variation * variation)); }

constexpr std::int64_t most = longest_run.count();

double sample_at(const std::vector<double>& samples, std::uint32_t word) {
  return samples[static_cast<std::size_t>((std::uint64_t{word} * samples.size()) >> 32U)];
}

std::int64_t scaled(std::int64_t duration, double factor) {
  if (factor == 1) return duration;
  return std::llround(std::min(static_cast<double>(duration) * factor, static_cast<double>(most)));
}

}  // namespace

Scenarios::Scenarios(const TaskGraph& graph, const Perturbation& perturbation,
                     std::uint32_t microbatches, Facts facts)
    : graph_(graph),
      perturbation_(perturbation),
      facts_(std::move(facts)),
      microbatches_(microbatches),
      jitters_(graph.tasks()),
      log_deviation_(graph.tasks()) {
  const Jitter& jitter = perturbation_.jitter;
  if (jitter.law == Jitter::Law::measured && facts_.variation.empty()) {
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
      log_deviation_[task] =
          log_deviation(facts_.variation[op.stage][static_cast<std::size_t>(op.kind)]);
    }
    if (computes && counts_microbatches(op.kind)) {
      first.emplace(std::pair(lane.device, op.microbatch / microbatches_), task);
    }
  }
  for (std::size_t item = 0; item < perturbation_.slow.size(); ++item) add_slow(item);
  const std::vector<std::uint32_t>& leader = facts_.members.leader;
  if (!leader.empty()) {
    group_of_.assign(graph.tasks(), SlowTimes::none);
    std::map<std::uint32_t, std::uint32_t> number;  // by leader
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      const auto next = static_cast<std::uint32_t>(together_.size());
      const auto [known, is_new] = number.try_emplace(leader[task], next);
      if (is_new) together_.emplace_back();
      together_[known->second].push_back(task);
      group_of_[task] = known->second;
    }
  }
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
  const SlowTimes& priced = facts_.slow;
  const bool in_compute = std::any_of(
      priced.choices.begin(), priced.choices.end(), [&](const SlowTimes::Choice& choice) {
        return std::find(choice.items.begin(), choice.items.end(), item) != choice.items.end();
      });
  if (devices.empty() && resource == graph_.resources.end() && name != "links" && !in_compute) {
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
    if (!priced.of_task.empty() && priced.of_task[task] != SlowTimes::none) continue;
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

void Scenarios::jitter_block(std::uint32_t task, const Words& words, const Nominal& nominal,
                             std::size_t count, std::int64_t* out) const {
  std::array<double, factor_block> factors{};
  if (perturbation_.jitter.law == Jitter::Law::samples) {
    for (std::size_t i = 0; i < count; ++i) {
      factors[i] = sample_at(perturbation_.jitter.samples, words[i]);
    }
  } else {
    log_normal_factors(words, log_deviation_[task], factors);
  }
  for (std::size_t i = 0; i < count; ++i) {
    // Half a picosecond up: llround would be a call, and keep the loop from vector code.
    const double shifted = std::min(nominal[i] * factors[i] + 0.5, static_cast<double>(most));
    out[i] = static_cast<std::int64_t>(shifted);
  }
}

// By scenario, the word that makes the longer op. A log-normal number grows with its word.
Scenarios::Words Scenarios::slowest(const Words& one, const Words& other) const {
  Words words{};
  const std::vector<double>& samples = perturbation_.jitter.samples;
  const bool sampled = perturbation_.jitter.law == Jitter::Law::samples;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool later =
        sampled ? sample_at(samples, other[i]) > sample_at(samples, one[i]) : other[i] > one[i];
    words[i] = later ? other[i] : one[i];
  }
  return words;
}

// The words of the slowest device that does the task.
Scenarios::Words Scenarios::words_of(std::uint32_t task, std::uint64_t scenario,
                                     std::size_t count) const {
  const auto of_member = [&](std::uint32_t member) {
    Words words{};
    for (std::size_t i = 0; i < count; i += group) {
      const PhiloxCounter four =
          drawn(perturbation_.seed, Stream::jitter, task, (scenario + i) / group, member);
      std::copy(four.begin(), four.end(), words.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return words;
  };
  const std::vector<std::uint32_t>& counts = facts_.members.count;
  const std::uint32_t members = counts.empty() ? 1 : counts[task];
  Words words = of_member(0);
  for (std::uint32_t member = 1; member < members; ++member) {
    words = slowest(words, of_member(member));
  }
  return words;
}

std::vector<std::vector<char>> Scenarios::drawn_items(std::uint64_t first,
                                                      std::size_t scenarios) const {
  std::vector<std::vector<char>> drawn_in;
  for (std::size_t item = 0; item < perturbation_.slow.size(); ++item) {
    std::vector<char>& in = drawn_in.emplace_back(scenarios);
    for (std::size_t k = 0; k < scenarios; ++k) {
      const PhiloxCounter words = drawn(perturbation_.seed, Stream::slow,
                                        static_cast<std::uint32_t>(item), (first + k) / group);
      const double at = uniform_of(words[(first + k) % group]);
      in[k] = at < perturbation_.slow[item].probability ? 1 : 0;
    }
  }
  return drawn_in;
}

bool Scenarios::is_drawn_apart(std::uint32_t task) const {
  const bool same = perturbation_.jitter.law != Jitter::Law::samples && log_deviation_[task] == 0;
  return jitters_[task] && !same;
}

void Scenarios::draw(std::uint64_t first, std::size_t scenarios,
                     std::span<std::int64_t> duration) const {
  const std::uint64_t seed = perturbation_.seed;
  const std::vector<std::vector<char>> in_force = drawn_items(first, scenarios);
  std::vector<Words> of_group(together_.size());
  std::vector<char> known(together_.size());
  for (std::size_t begin = 0; begin < scenarios; begin += factor_block) {
    const std::size_t count = std::min(factor_block, scenarios - begin);
    std::fill(known.begin(), known.end(), 0);
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) {
      std::int64_t* const out = duration.data() + task * scenarios + begin;
      const std::int64_t alone = graph_.duration[task].count();
      std::fill(out, out + count, alone);
      const std::uint32_t c =
          facts_.slow.of_task.empty() ? SlowTimes::none : facts_.slow.of_task[task];
      if (c != SlowTimes::none) {
        const SlowTimes::Choice& choice = facts_.slow.choices[c];
        for (std::size_t k = 0; k < count; ++k) {
          std::size_t set = 0;
          for (std::size_t i = 0; i < choice.items.size(); ++i) {
            set |= static_cast<std::size_t>(in_force[choice.items[i]][begin + k]) << i;
          }
          out[k] = choice.time[set].count();
        }
      }
      if (alone == 0 || !is_drawn_apart(task)) continue;
      Nominal nominal{};
      for (std::size_t k = 0; k < count; ++k) nominal[k] = static_cast<double>(out[k]);
      if (group_of_.empty() || together_[group_of_[task]].size() == 1) {
        jitter_block(task, words_of(task, first + begin, count), nominal, count, out);
        continue;
      }
      const std::uint32_t g = group_of_[task];
      if (known[g] == 0) {
        known[g] = 1;
        of_group[g] = words_of(together_[g].front(), first + begin, count);
        for (const std::uint32_t other : together_[g]) {
          of_group[g] = slowest(of_group[g], words_of(other, first + begin, count));
        }
      }
      jitter_block(task, of_group[g], nominal, count, out);
    }
  }
  for (const SlowTasks& slow : slow_) {
    const Slow& item = perturbation_.slow[slow.item];
    for (std::size_t k = 0; k < scenarios; ++k) {
      if (in_force[slow.item][k] == 0) continue;
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
