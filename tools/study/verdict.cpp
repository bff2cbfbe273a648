// Judges a case: the order is compiled once, its tasks are priced for each case, and of what the
// simulation gives only the pace and the peaks of memory are looked at.
#include "tools/study/verdict.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/interference.hpp"
#include "sim/lower/message_need.hpp"
#include "sim/lower/passes.hpp"
#include "sim/lower/repricing.hpp"
#include "tools/base/check_point.hpp"
#include "tools/study/figures/fit.hpp"
#include "tools/study/pace/pace.hpp"
#include "tools/study/pace/quick_pace.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/run/run.hpp"
#include "tools/study/study.hpp"

namespace stageline {

Bytes Verdict::fullest() const {
  return peak.empty() ? Bytes{} : *std::max_element(peak.begin(), peak.end());
}

namespace {

constexpr int pace_steps = 3;  // of a flushed schedule

Verdict verdict_of(const Outcome& outcome) {
  Verdict verdict;
  verdict.step = outcome.step_time;
  verdict.throughput = outcome.throughput;
  verdict.bubble = outcome.bubble_fraction;
  verdict.fit = outcome.fit;
  verdict.need = tightest(outcome);
  if (!outcome.bytes_known()) return verdict;
  for (const DeviceMemory& device : outcome.memory.device) verdict.peak.push_back(device.peak);
  return verdict;
}

// One order: what the schedule wrote, and the same completed, validated and compiled.
class Order {
 public:
  Order(Program one, Program three, const Costs& costs)
      : one_step_(std::move(one)),
        three_steps_(std::move(three)),
        messages_(needs_messages(three_steps_, costs.network)),
        without_(without_reductions(costs)),
        one_(completed(one_step_, costs, true)),
        three_(completed(three_steps_, costs, false)),
        one_priced_(if_wanted(one_), costs),
        three_priced_(if_wanted(three_), costs),
        pace_(if_wanted(three_), three_priced_.graph()) {}

  bool is_of(const Program& one, const Program& three) const {
    return three == three_steps_ && one == one_step_;
  }
  std::size_t tasks() const { return one_priced_.graph().tasks() + three_priced_.graph().tasks(); }

  /// Whether complete() would write the same messages and reductions for these costs.
  bool suits(const Costs& costs) const {
    return needs_messages(three_steps_, costs.network) == messages_ &&
           without_reductions(costs) == without_;
  }

  const Program& shown() const { return one_; }
  void price(const Costs& costs, TaskGraph& graph) const { one_priced_.price(costs, graph); }

  /// Empty: pace_of() has to say. `graph`: room to work in.
  std::optional<Time> step(const Costs& costs, TaskGraph& graph) const {
    three_priced_.price(costs, graph);
    look_at_check_point();
    const TaskTimes times = simulate_together(graph, {costs.slowdown, costs.network.host});
    if (const auto quick = pace_.step(graph, times)) return quick;
    if (!flows_take_no_turns(graph)) return std::nullopt;
    return repeated_step(three_, graph, times);
  }

 private:
  // Each part of what is made takes seconds where there are millions of tasks.
  static const Program& if_wanted(const Program& program) {
    look_at_check_point();
    return program;
  }

  static Program completed(Program program, const Costs& costs, bool validated) {
    look_at_check_point();
    program = complete(std::move(program), costs);
    if (validated) validate(program);
    return program;
  }

  Program one_step_;
  Program three_steps_;
  bool messages_;
  std::vector<bool> without_;  // reductions
  Program one_;
  Program three_;
  Repricing one_priced_;
  Repricing three_priced_;
  QuickPace pace_;
};

std::size_t hash_of(const Program& program, bool messages) {
  std::uint64_t hash = 0xcbf29ce484222325U + (messages ? 1 : 0);  // Fowler, Noll and Vo
  for (const std::vector<Op>& list : program.ops) {
    for (const Op op : list) {
      const std::uint64_t word = static_cast<std::uint64_t>(op.kind) << 56U |
                                 std::uint64_t{op.part} << 49U |
                                 std::uint64_t{op.overlapped} << 48U |
                                 std::uint64_t{op.stage} << 32U | std::uint64_t{op.microbatch};
      hash = (hash ^ word) * 0x100000001b3U;
      hash ^= hash >> 29U;
    }
    hash = (hash ^ list.size()) * 0x100000001b3U;
  }
  return hash;
}

// Schedules that read nothing of a Problem's costs and memories but the edges between stages, as
// their sources and those of the parts that they include show. (Others, too, may write the same
// order for other costs: their programs are compared.)
constexpr std::string_view without_costs[] = {
    "naive",      "gpipe",      "1f1b",     "eager_1f1b", "interleaved_1f1b",
    "1f1b_v",     "looped_bfs", "zb_h1",    "zb_h2",      "interleaved_zb",
    "dualpipe_v", "chimera",    "dualpipe", "gems",       "seq1f1b",
    "svpp"};

// All that the order of such a schedule depends on.
struct Inputs {
  const Scheduler* scheduler = nullptr;
  Knobs knobs;
  int microbatches = 0;
  int chunks = 1;
  int data_ranks = 1;
  Placement placement;
  std::vector<StageEdge> edges;
  std::vector<std::string> devices;
  std::vector<StageRecomputation> recomputed;
  std::vector<bool> kept;  // not recomputed by the schedule either
  std::optional<RecomputeStart> start;
  std::vector<bool> copied;
  int ahead = 0;
  int blocks_copied = 0;
  friend bool operator==(const Inputs&, const Inputs&) = default;
};

// Empty where the schedule may read more.
std::optional<Inputs> inputs_of(const Case& asked, const Layout& layout, const Costs& costs) {
  const Scheduler* const scheduler = asked.spec.scheduler;
  const bool reads_none = std::find(std::begin(without_costs), std::end(without_costs),
                                    scheduler->name) != std::end(without_costs);
  if (!reads_none || asked.pipelines() > 1 || !layout.one_layer.empty()) return std::nullopt;
  Inputs inputs;
  inputs.scheduler = scheduler;
  inputs.knobs = layout.knobs;
  inputs.microbatches = asked.microbatches;
  inputs.chunks = layout.sequence_chunks;
  if (asked.ranked) {
    const Degrees& degrees = asked.ranked->grid().degrees();
    if (reduces_once(degrees)) {
      inputs.data_ranks = asked.ranked->data_ranks();
    }
  }
  inputs.placement = layout.placement;
  for (const EdgeCosts& edge : costs.edges) inputs.edges.push_back(edge.edge);
  for (const Device& device : asked.cluster.devices) inputs.devices.push_back(device.name);
  inputs.recomputed = by_stage(asked.recomputation, asked.model, layout.plan.partition);
  inputs.kept = kept_stages(asked.recomputation, layout.plan.partition);
  inputs.start = asked.recomputation.start;
  inputs.copied = by_stage(asked.offloading, layout.plan.partition.stages);
  inputs.ahead = asked.offloading.ahead;
  inputs.blocks_copied = asked.offloading.blocks;
  return inputs;
}

bool is_flushed(const Case& asked) {
  return asked.spec.scheduler->synchrony == Synchrony::synchronous &&
         asked.weights.value_or(WeightRule::flush) == WeightRule::flush;
}

// Whether three steps may be written; else study() says why not, or does without.
bool may_be_written(const Case& asked, const Layout& layout, const Costs& costs) {
  try {
    check_length(asked, layout, costs, pace_steps);
  } catch (const UsageError&) {
    return false;
  }
  return true;
}

}  // namespace

// Orders by their hash; all are dropped where they are too many. A large one, of some 300 bytes a
// task, is made anew for each case.
struct Judge::Kept {
  static constexpr std::size_t most_tasks = 1 << 22;
  static constexpr std::size_t most_tasks_of_one = most_tasks / 8;
  static constexpr std::size_t most_known = 1 << 13;

  std::shared_ptr<const Order> find(const Inputs& inputs, const Costs& costs) {
    const std::lock_guard<std::mutex> lock(access);
    const auto [first, last] = known.equal_range(key_of(inputs));
    for (auto at = first; at != last; ++at) {
      const auto& [of, order] = at->second;
      if (of == inputs && order->suits(costs)) return order;
    }
    return nullptr;
  }

  void keep(const Inputs& inputs, const std::shared_ptr<const Order>& order) {
    if (is_large(*order)) return;
    const std::lock_guard<std::mutex> lock(access);
    if (known.size() >= most_known) known.clear();
    known.emplace(key_of(inputs), std::pair(inputs, order));
  }

  using Key = std::tuple<const Scheduler*, int, std::size_t, std::size_t>;
  static Key key_of(const Inputs& inputs) {
    return {inputs.scheduler, inputs.microbatches, inputs.devices.size(),
            inputs.placement.stage.size()};
  }

  std::shared_ptr<const Order> find(const Program& one, const Program& three, const Costs& costs) {
    const bool messages = needs_messages(three, costs.network);
    const std::pair key{hash_of(three, messages), messages};
    {
      const std::lock_guard<std::mutex> lock(access);
      const auto [first, last] = orders.equal_range(key);
      for (auto at = first; at != last; ++at) {
        if (at->second->is_of(one, three) && at->second->suits(costs)) return at->second;
      }
    }
    auto order = std::make_shared<const Order>(one, three, costs);
    if (is_large(*order)) return order;
    const std::lock_guard<std::mutex> lock(access);
    tasks += order->tasks();
    if (tasks > most_tasks) {
      orders.clear();
      known.clear();
      tasks = order->tasks();
    }
    orders.emplace(key, order);
    return order;
  }

  static bool is_large(const Order& order) { return order.tasks() > most_tasks_of_one; }

  std::mutex access;
  std::multimap<std::pair<std::size_t, bool>, std::shared_ptr<const Order>> orders;
  std::multimap<Key, std::pair<Inputs, std::shared_ptr<const Order>>> known;
  std::size_t tasks = 0;
};

Judge::Judge() : kept_(std::make_unique<Kept>()) {}
Judge::~Judge() = default;

Verdict Judge::verdict(const Case& asked) {
  Verdict verdict = judged(asked);
  verdict.intervals = intervals_of(asked.model, asked.ranked.get());
  return verdict;
}

Verdict Judge::judged(const Case& asked) {
  look_at_check_point();
  const bool async = asked.messages.value_or(Messages::async) == Messages::async;
  if (asked.program || asked.steps != 0 || !async || !is_flushed(asked)) {
    return verdict_of(study(asked));
  }
  const Layout layout = checked_layout(asked);
  Outcome outcome;
  outcome.costs = costs_of(asked, layout);
  const Costs& costs = outcome.costs;
  if (!may_be_written(asked, layout, costs)) return verdict_of(study(asked));
  Runs runs(asked, layout, costs, pace_steps);
  const std::optional<Inputs> inputs = inputs_of(asked, layout, costs);
  std::shared_ptr<const Order> order;
  if (inputs) order = kept_->find(*inputs, costs);
  if (!order) {
    if (runs.second_step_differs()) return verdict_of(study(asked));
    const Program three = runs.program(pace_steps);
    const Program one = runs.program(1);
    if (three.settings.weights != WeightRule::flush || three.settings.messages != Messages::async) {
      return verdict_of(study(asked));
    }
    order = kept_->find(one, three, costs);
    if (inputs) kept_->keep(*inputs, order);
  }

  const Program& shown = order->shown();
  thread_local TaskGraph graph;  // given back to the system and taken anew, its pages cost a sixth
  look_at_check_point();
  order->price(costs, graph);
  look_at_check_point();
  const TaskTimes times = simulate_together(graph, {costs.slowdown, costs.network.host});
  look_at_check_point();
  const Time busy = busy_in_a_step(shown, graph);
  outcome.memory = memory_of(shown, costs, timeline_of(shown, graph, times));
  outcome.program.devices = shown.devices;
  outcome.microbatches = shown.microbatches / shown.settings.sequence_chunks;
  outcome.microbatch_size = asked.model.batch;
  outcome.copies = asked.copies();
  set_fit(asked.cluster, outcome);
  look_at_check_point();
  const std::optional<Time> step = order->step(costs, graph);
  outcome.step_time = step ? *step : pace_of(asked, layout, runs, true).step.time;
  if (outcome.step_time != Time{}) {
    outcome.throughput = throughput_of(outcome);
    outcome.bubble_fraction =
        bubble_of(outcome.step_time, static_cast<int>(shown.devices.size()), busy);
  }
  return verdict_of(outcome);
}

}  // namespace stageline
