#include "tools/study/whatif/scenario_runs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "cost_models/tied_weights.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/rhythm.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/batch/batched_sweep.hpp"
#include "sim/engine.hpp"
#include "sim/interference.hpp"
#include "tools/base/parallel.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/pace/run_with_pace.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/run/run.hpp"
#include "tools/study/whatif/jitter_members.hpp"
#include "tools/study/whatif/slow_devices.hpp"
#include "tools/study/whatif/slow_times.hpp"

namespace stageline {
namespace {

constexpr std::size_t block = BatchedSweep::width;
constexpr std::size_t scenarios_at_a_time = 64;  // scenarios that a thread takes at a time
constexpr std::int64_t checked_frozen = 64;      // scenarios that are run both ways
constexpr int longest_flushed = 6;               // steps until a flushed step is steady
constexpr double half_interquartile_of_normal = 0.674489750196;  // of σ

// Micro-batches whose time is taken: from when all before `first` are done to when all before `end`
// are.
struct Window {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t length() const { return end - first; }
};

// After how many steps each micro-batch of a step meets the same copies of all stages again: 2
// where an odd number takes turns between two directions. Such steps alternate where devices
// differ.
int steps_of_a_turn(const Program& program) {
  std::int64_t steps = 1;
  for (const StagePlace& place : program.placement.stage) {
    const std::int64_t copies = std::max<std::int64_t>(1, std::ssize(place.replicas));
    steps = std::lcm(steps, copies / std::gcd<std::int64_t>(copies, program.microbatches));
  }
  return static_cast<int>(std::min<std::int64_t>(steps, longest_flushed));
}

// The steps of a flushed run but the first, turn by turn from the last one on: in the last one no
// messages of a next step share the links with reductions. Then several turns at the end together,
// the mean of which is the pace where steps alternate. A run of no more steps than a turn: steps.
std::vector<Window> flushed_windows(const Program& program) {
  const std::int64_t m = program.microbatches;
  const int turn = program.steps > steps_of_a_turn(program) ? steps_of_a_turn(program) : 1;
  std::vector<Window> windows;
  for (int end = program.steps; end > turn; --end) windows.push_back({(end - turn) * m, end * m});
  for (int steps = 2 * turn; steps < program.steps; steps += turn) {
    windows.push_back({(program.steps - steps) * m, program.steps * m});
  }
  return windows;
}

// The windows of a stream whose time, for one step, may be the steady one, in the order in which
// they are tried. They lie in the middle: while a pipeline fills or drains, it has another pace.
std::vector<Window> stream_windows(const Program& program, const Outcome& nominal, bool given) {
  const std::int64_t all = program.total_microbatches();
  const std::int64_t m = program.microbatches;
  const Rhythm rhythm = rhythm_of(program.placement, static_cast<int>(program.devices.size()),
                                  false, program.microbatches);
  const std::int64_t round = rhythm.round;
  std::vector<Window> windows;
  const auto add = [&](std::int64_t first, std::int64_t length) {
    if (first + length <= all) windows.push_back({first, first + length});
  };
  const auto add_middle = [&](std::int64_t length) {
    add(std::max<std::int64_t>(0, all - length) / 2 / round * round, length);
  };
  const auto whole = [&](std::int64_t repeats) { return (m + repeats - 1) / repeats * repeats; };
  if (nominal.period) {
    add_middle(whole(nominal.period->rounds * nominal.round));
  } else if (nominal.settled) {
    for (std::int64_t length = whole(round); length < m + rhythm.rounds * round; length += round) {
      add_middle(length);
    }
  } else {
    add(rhythm.warm_up * round, rhythm.rounds * round);  // as measured
  }
  if (given) add(0, all);  // what is too short for a pace has a mean
  add_middle(m);
  return windows;
}

class StepEnds {
 public:
  StepEnds(const Program& program, const TaskGraph& graph, Window window)
      : belongs_(graph.tasks()),
        microbatches_(program.microbatches),
        length_(static_cast<int>(window.length())) {
    for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
      const std::int64_t microbatch = microbatch_of(program, graph.op[task]);
      belongs_[task] = microbatch < window.first ? Belongs::before
                       : microbatch < window.end ? Belongs::inside
                                                 : Belongs::none;
    }
  }

  // For one step, of `scenarios` columns; available[task * scenarios + k].
  void steps(std::span<const std::int64_t> available, std::size_t scenarios, Time* step) const {
    std::vector<std::int64_t> before(scenarios);
    std::vector<std::int64_t> inside(scenarios);
    for (std::size_t task = 0; task < belongs_.size(); ++task) {
      if (belongs_[task] == Belongs::none) continue;
      std::vector<std::int64_t>& latest = belongs_[task] == Belongs::inside ? inside : before;
      for (std::size_t k = 0; k < scenarios; ++k) {
        latest[k] = std::max(latest[k], available[task * scenarios + k]);
      }
    }
    for (std::size_t k = 0; k < scenarios; ++k) {
      const Time took{std::max<std::int64_t>(0, inside[k] - before[k])};
      step[k] = step_of({took, 1, {}}, length_, microbatches_);
    }
  }

 private:
  enum class Belongs : std::uint8_t { none, before, inside };
  std::vector<Belongs> belongs_;  // by task
  int microbatches_;              // of a step
  int length_;                    // of the window
};

// The standard deviation over the mean of a stage's ops, from the layers' measured spreads.
StageVariation variation_of(const Model& model, const Partition& partition, int stages) {
  struct Sum {
    double time = 0;
    double variance = 0;
  };
  std::vector<std::array<Sum, op_kinds>> sums(as_size(stages));
  bool any = false;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Layer& layer = model.layers[l];
    auto& stage = sums[as_size(partition.stage_of[l])];
    const auto add = [&](OpKind kind, Time time, Time spread) {
      const double deviation = static_cast<double>(spread.count()) / half_interquartile_of_normal;
      Sum& sum = stage[static_cast<std::size_t>(kind)];
      sum.time += static_cast<double>(time.count());
      sum.variance += deviation * deviation;
      any = any || spread > Time{};
    };
    add(OpKind::forward, layer.forward, layer.forward_spread);
    add(OpKind::recompute, layer.forward, layer.forward_spread);
    add(OpKind::input_grad, layer.input_grad, layer.input_grad_spread);
    add(OpKind::weight_grad, layer.weight_grad, layer.weight_grad_spread);
    add(OpKind::backward, layer.backward, layer.backward_spread);
    add(OpKind::update, layer.update, layer.update_spread);
  }
  if (!any) return {};
  StageVariation variation(sums.size());
  for (std::size_t s = 0; s < sums.size(); ++s) {
    for (std::size_t kind = 0; kind < sums[s].size(); ++kind) {
      const Sum& sum = sums[s][kind];
      variation[s][kind] = sum.time > 0 ? std::sqrt(sum.variance) / sum.time : 0;
    }
  }
  return variation;
}

// Refuses a block of scenarios in which all tasks together, and their lags, last longer than can be
// added up.
void check_room(const TaskGraph& graph, std::span<const std::int64_t> duration) {
  constexpr int coarse = 26;  // bits, some 67 us: sums of all tasks of a run fit
  std::array<std::int64_t, block> sum{};
  for (std::size_t task = 0; task < graph.tasks(); ++task) {
    const std::int64_t lag = graph.paths[graph.path_of[task]].lag.count();
    for (std::size_t k = 0; k < block; ++k) {
      sum[k] += (duration[task * block + k] >> coarse) + (lag >> coarse);
    }
  }
  const std::int64_t longest = *std::max_element(sum.begin(), sum.end());
  if (longest <= longest_run.count() >> coarse) return;
  throw UsageError(fmt::format(
      "the ops of one scenario may last {:.3g} s together, longer than the clock's {:.3g} s (53 days); give shorter pauses, or less slow devices and links",
      std::ldexp(static_cast<double>(longest), coarse) / 1e12, to_seconds(longest_run)));
}

// What a thread works with.
struct Bench {
  explicit Bench(const TaskGraph& graph)
      : graph(graph), duration(graph.tasks() * block), available(graph.tasks() * block) {}
  TaskGraph graph;  // with durations of its own
  std::vector<std::int64_t> duration;
  std::vector<std::int64_t> available;
};

// Walks the critical paths of single scenarios.
class CriticalShares {
 public:
  explicit CriticalShares(const TaskGraph& graph) : names_(graph.devices) {
    names_.emplace_back("messages");
    share_.resize(names_.size());
    often_.resize(names_.size());
  }

  void add(const TaskGraph& graph, const TaskTimes& times) {
    std::vector<double> time(names_.size());
    double sum = 0;
    if (device_of_.empty()) {
      for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
        const Lane& lane = graph.lanes[graph.lane[task]];
        if (lane.kind == LaneKind::compute) device_of_[plain(graph.op[task])] = lane.device;
      }
    }
    for (const PathPiece& piece : critical_path(graph, times)) {
      const auto found = device_of_.find(plain(piece.op));
      const bool computes = piece.kind == PathPiece::Kind::task && found != device_of_.end();
      const double took = static_cast<double>((piece.end - piece.start).count());
      time[computes ? as_size(found->second) : names_.size() - 1] += took;
      sum += took;
    }
    if (sum == 0) return;
    const auto most =
        static_cast<std::size_t>(std::max_element(time.begin(), time.end()) - time.begin());
    for (std::size_t i = 0; i < time.size(); ++i) share_[i] += time[i] / sum;
    often_[most] += 1;
    ++count_;
  }

  std::vector<CriticalShare> sorted() const {
    std::vector<CriticalShare> all;
    for (std::size_t i = 0; i < names_.size() && count_ > 0; ++i) {
      all.push_back({names_[i], share_[i] / count_, often_[i] / count_});
    }
    std::stable_sort(all.begin(), all.end(), [](const CriticalShare& a, const CriticalShare& b) {
      return a.share > b.share;
    });
    return all;
  }

 private:
  std::vector<std::string> names_;
  std::vector<double> share_;
  std::vector<double> often_;
  std::map<Op, int> device_of_;
  double count_ = 0;
};

class ScenarioRunner {
 public:
  ScenarioRunner(const Case& asked, const Outcome& nominal, const ScenarioRequest& request)
      : request_(request) {
    const Layout layout = checked_layout(asked);
    if (is_given(asked) && nominal.program.steps < 2) {
      throw UsageError(
          "the program has one step and cannot be continued, so no step of it follows another; give "
          "one of two steps or more");
    }
    const Costs costs = costs_of(asked, layout);
    const Window window = take_window(asked, layout, costs, nominal);
    ends_.emplace(run_.program, run_.graph, window);
    // Under fair sharing the run's durations are what tasks took beside each other; scenarios draw
    // what they take alone.
    alone_ = is_fair(run_.graph) ? compile(run_.program, costs) : run_.graph;
    together_ = {costs.slowdown, costs.network.host};
    const Perturbation perturbation = with_devices(request.perturbation, asked, alone_.devices);
    Scenarios::Facts facts;
    facts.variation =
        variation_of(held_on(asked.model, nominal.plan.partition, run_.program.placement),
                     nominal.plan.partition, run_.program.stages());
    facts.members = jitter_members(asked, costs, alone_);
    facts.slow = slow_times(perturbation, asked, layout, costs, run_.program, alone_);
    scenarios_.emplace(alone_, perturbation, static_cast<std::uint32_t>(run_.program.microbatches),
                       std::move(facts));
    const bool shared = is_fair(run_.graph) || shares_resources(run_.graph);
    found_.engine = !shared          ? ScenarioEngine::batched
                    : request.freeze ? ScenarioEngine::frozen
                                     : ScenarioEngine::single;
    if (found_.engine == ScenarioEngine::batched) sweep_.emplace(run_.graph);
    if (found_.engine == ScenarioEngine::frozen) sweep_.emplace(run_.graph, run_.times);
  }

  ScenarioSteps all() {
    const auto count = static_cast<std::size_t>(request_.scenarios);
    found_.step.resize(count);
    const std::size_t chunks = (count + scenarios_at_a_time - 1) / scenarios_at_a_time;
    std::vector<char> done(chunks);
    ProgressCount progress(request_.progress, request_.scenarios);
    in_parallel_with(chunks, request_.threads > 0 ? request_.threads : available_cores(), [&] {
      return [&, bench = std::make_shared<Bench>(alone_)](std::size_t c) {
        if (stopped()) return;
        take(c, count, *bench);
        done[c] = 1;
        progress.add(static_cast<std::int64_t>(
            std::min(scenarios_at_a_time, count - c * scenarios_at_a_time)));
      };
    });
    const auto missing = std::find(done.begin(), done.end(), 0);
    if (missing != done.end()) {
      found_.partial = true;
      found_.step.resize(static_cast<std::size_t>(missing - done.begin()) * scenarios_at_a_time);
    }
    trace();
    return std::move(found_);
  }

 private:
  static bool is_given(const Case& asked) { return asked.program && !repeats(asked); }

  static Time nominal_step(const Run& run, Window window) {
    std::vector<std::int64_t> available;
    for (const Time at : run.times.available) available.push_back(at.count());
    Time step{};
    StepEnds(run.program, run.graph, window).steps(available, 1, &step);
    return step;
  }

  // The first window of the shortest run that lasts as long as the steady step; else, of the
  // longest run, the one that is nearest to it.
  Window take_window(const Case& asked, const Layout& layout, const Costs& costs,
                     const Outcome& nominal) {
    const bool given = is_given(asked);
    const bool flushed = nominal.synchrony == Synchrony::synchronous;
    int least = flushed ? 1 + steps_of_a_turn(nominal.program) : std::max(2, nominal.program.steps);
    int most = given ? nominal.program.steps : flushed ? longest_flushed : least;
    least = std::min(least, most);
    if (!given && flushed && nominal.period) {
      most = std::max<int>(most, 2 * static_cast<int>(nominal.period->rounds) + 1);
    }
    if (!given && !flushed) most = std::max(most, steps_of_a_pace(asked, layout, false));
    if (!given && !flushed && nominal.period) {
      most = std::max(most, steps_of_a_stream(nominal.program));
    }
    Runs runs(asked, layout, costs, most);
    const double steady = to_seconds(nominal.step_time);
    Window nearest;
    double off = 0;
    for (found_.steps = least;; found_.steps = std::min(2 * found_.steps, most)) {
      const Run& run = runs.of(found_.steps);
      nearest = {};
      for (const Window& window :
           flushed ? flushed_windows(run.program) : stream_windows(run.program, nominal, given)) {
        const Time step = nominal_step(run, window);
        const double this_off = std::abs(to_seconds(step) - steady);
        if (nearest.length() > 0 && this_off >= off) continue;
        nearest = window;
        off = this_off;
        found_.nominal = step;
        if (off <= same_step * steady) break;
      }
      if (off <= same_step * steady || found_.steps == most) break;
    }
    run_ = runs.take(found_.steps);
    return nearest;
  }

  bool stopped() const { return request_.stop != nullptr && request_.stop->load(); }

  std::uint64_t number(std::size_t scenario) const {
    return static_cast<std::uint64_t>(request_.first) + scenario;
  }

  void take(std::size_t c, std::size_t count, Bench& bench) {
    for (std::size_t first = c * scenarios_at_a_time;
         first < std::min(count, (c + 1) * scenarios_at_a_time); first += block) {
      scenarios_->draw(number(first), block, bench.duration);
      check_room(alone_, bench.duration);
      if (sweep_) {
        sweep_->ends(bench.duration, bench.available);
      } else {
        for (std::size_t k = 0; k < std::min(block, count - first); ++k) run_single(k, bench);
      }
      std::array<Time, block> step{};
      ends_->steps(bench.available, block, step.data());
      for (std::size_t k = 0; k < std::min(block, count - first); ++k) {
        found_.step[first + k] = step[k];
      }
    }
  }

  // Column k of the bench by the engine that serves shared links.
  TaskTimes run_single(std::size_t k, Bench& bench) const {
    for (std::uint32_t task = 0; task < alone_.tasks(); ++task) {
      const std::int64_t drawn = bench.duration[task * block + k];
      bench.graph.duration[task] = Time{drawn};
      if (!bench.graph.bytes.empty()) scale_flow(task, drawn, bench.graph);
    }
    TaskTimes times =
        is_fair(bench.graph) ? simulate_together(bench.graph, together_) : simulate(bench.graph);
    for (std::uint32_t task = 0; task < alone_.tasks(); ++task) {
      bench.available[task * block + k] = times.available[task].count();
    }
    return times;
  }

  // A slow transfer has as many more bytes to move as make it last so long behind its setup.
  void scale_flow(std::uint32_t task, std::int64_t drawn, TaskGraph& graph) const {
    const std::int64_t usual = alone_.duration[task].count();
    const std::int64_t setup = alone_.paths[alone_.path_of[task]].setup.count();
    const Bytes bytes = alone_.bytes[task];
    graph.bytes[task] = bytes;
    if (usual == drawn || usual <= setup) return;
    const double share = static_cast<double>(std::max<std::int64_t>(drawn - setup, 0)) /
                         static_cast<double>(usual - setup);
    graph.bytes[task] = Bytes{std::llround(static_cast<double>(bytes.count) * share)};
  }

  // The critical paths of the first scenarios, and how far off a frozen order is.
  void trace() {
    const bool fair = is_fair(run_.graph);
    if (fair && found_.engine != ScenarioEngine::frozen) return;  // nothing to be told
    CriticalShares shares(run_.graph);
    Bench bench(alone_);
    const auto count = static_cast<std::size_t>(
        std::min<std::int64_t>(request_.traced, static_cast<std::int64_t>(found_.step.size())));
    double error = 0;
    std::size_t compared = 0;
    for (std::size_t first = 0; first < count && !stopped(); first += block) {
      scenarios_->draw(number(first), block, bench.duration);
      for (std::size_t k = 0; k < std::min(block, count - first); ++k) {
        bench.graph.bytes = alone_.bytes;
        const TaskTimes times = run_single(k, bench);
        if (!fair) shares.add(bench.graph, times);
        if (found_.engine != ScenarioEngine::frozen || first + k >= checked_frozen) continue;
        std::vector<std::int64_t> column;
        for (const Time at : times.available) column.push_back(at.count());
        Time step{};
        ends_->steps(column, 1, &step);
        const double off = to_seconds(found_.step[first + k]) / to_seconds(step) - 1;
        error += std::abs(off);
        ++compared;
      }
    }
    if (compared > 0) found_.frozen_error = error / static_cast<double>(compared);
    found_.critical = shares.sorted();
  }

  const ScenarioRequest& request_;
  Run run_;
  TaskGraph alone_;  // the run's, with the durations that scenarios perturb
  Interference together_;
  std::optional<StepEnds> ends_;
  std::optional<Scenarios> scenarios_;
  std::optional<BatchedSweep> sweep_;
  ScenarioSteps found_;
};

}  // namespace

std::string_view name(ScenarioEngine engine) {
  switch (engine) {
    case ScenarioEngine::batched:
      return "batched";
    case ScenarioEngine::frozen:
      return "frozen";
    case ScenarioEngine::single:
      return "single";
  }
  return "";  // unreachable; g++ wants it
}

ScenarioSteps scenario_steps(const Case& asked, const Outcome& nominal,
                             const ScenarioRequest& request) {
  if (request.scenarios < 1 || request.scenarios > most_scenarios) {
    throw UsageError(fmt::format("the number of scenarios must be from 1 to {}, not {}",
                                 most_scenarios, request.scenarios));
  }
  if (request.first < 0 || request.first % static_cast<std::int64_t>(block) != 0) {
    throw UsageError(
        fmt::format("the first scenario is a multiple of {}, not {}", block, request.first));
  }
  return ScenarioRunner(asked, nominal, request).all();
}

Time quantile(const std::vector<Time>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(low);
  return sorted[low] +
         Time{std::llround(part * static_cast<double>((sorted[high] - sorted[low]).count()))};
}

Distribution distribution_of(std::vector<Time> times) {
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  double sum = 0;
  for (const Time time : times) sum += static_cast<double>(time.count()) / count;
  double squares = 0;
  for (const Time time : times) {
    const double off = static_cast<double>(time.count()) - sum;
    squares += off * off / count;
  }
  return {Time{std::llround(sum)}, Time{std::llround(std::sqrt(squares))},
          quantile(times, 0.05),   quantile(times, 0.5),
          quantile(times, 0.95),   quantile(times, 0.99)};
}

std::vector<double> shares_of_best(const std::vector<std::vector<Time>>& steps,
                                   const std::vector<double>& samples) {
  std::vector<double> best(steps.size());
  if (steps.empty()) return best;
  const std::size_t scenarios = steps.front().size();
  for (std::size_t k = 0; k < scenarios; ++k) {
    double highest = 0;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double rate =
          samples[i] / static_cast<double>(std::max<std::int64_t>(1, steps[i][k].count()));
      if (who.empty() || rate > highest) {
        highest = rate;
        who = {i};
      } else if (rate == highest) {
        who.push_back(i);
      }
    }
    for (const std::size_t i : who) best[i] += 1.0 / static_cast<double>(who.size());
  }
  for (double& share : best) share /= static_cast<double>(scenarios);
  return best;
}

}  // namespace stageline
