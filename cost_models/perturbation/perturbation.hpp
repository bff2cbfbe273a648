// What may differ from the costs in a run, as a value: jitter of ops, slow devices and links,
// pauses. A scenario is one draw of all of it; scenario k is the same whatever else is drawn.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/task_graph.hpp"

namespace stageline {

/// How long an op takes, over what its costs say, collectives inside it included. Each op of each
/// scenario is drawn apart, and by each device that takes part in it (JitterMembers).
struct Jitter {
  enum class Law : std::uint8_t {
    none,
    log_normal,  // of mean 1, with `variation` as standard deviation
    measured,    // the same, with the spread that the trace states for the layers of the op's stage
    samples,     // one of `samples`, each as likely
  };
  Law law = Law::none;
  double variation = 0;
  std::vector<double> samples;
  bool transfers = false;  // messages and copies, too; else compute alone
  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// A device on which compute, or a link on which transfers, take `factor` times as long, in a share
/// of the scenarios, drawn for each scenario and item of the list.
struct Slow {
  std::string name;  // of a device; of a resource of the network; "links": all transfers
  double factor = 1;
  double probability = 1;
  std::vector<int> devices{};  // that it is about, of the graph's; empty: the one of that name
  friend bool operator==(const Slow&, const Slow&) = default;
};

/// Every `every`-th step on average, drawn for each device and step, the device's first compute op
/// of the step takes so much longer: garbage collection, a checkpoint.
struct Pause {
  double every = 0;  // at least 1
  Time time{};
  friend bool operator==(const Pause&, const Pause&) = default;
};

/// What is accepted: of Jitter::variation, of Slow::factor.
inline constexpr double most_variation = 2;
inline constexpr double least_slow = 0.01;
inline constexpr double most_slow = 100;

struct Perturbation {
  Jitter jitter;
  std::vector<Slow> slow;
  std::vector<Pause> pauses;
  std::uint64_t seed = 1;

  bool none() const { return jitter.law == Jitter::Law::none && slow.empty() && pauses.empty(); }
  friend bool operator==(const Perturbation&, const Perturbation&) = default;
};

/// "5%", "measured", "5%,transfers". Throws UsageError, which begins with `what`.
Jitter parse_jitter(const std::string& text, const std::string& what);
/// "gpu2:1.2@0.1" into its parts, whatever their values; nothing where it has not this form.
/// Without a probability it is 1.
std::optional<Slow> slow_item(std::string_view word);
/// "gpu2:1.2", "gpu2:1.2@0.1" (in a tenth of the scenarios), comma-separated.
std::vector<Slow> parse_slow_items(const std::string& text, const std::string& what);
/// "100:50ms", comma-separated.
std::vector<Pause> parse_pauses(const std::string& text, const std::string& what);

/// The standard deviation over the mean of an op's time, by kind of op and stage: what the trace
/// measured. Empty where it states no spread.
using StageVariation = std::vector<std::array<double, op_kinds>>;  // by stage

/// Which devices do an op together: each draws its own jitter, and the op is as slow as the slowest
/// of them.
struct JitterMembers {
  std::vector<std::uint32_t> count;  // by task, the devices of its rank, at least 1; empty: 1 each
  /// By task: the first of the tasks that wait for one another, all of which take the slowest draw
  /// of all. Empty: each waits for itself.
  std::vector<std::uint32_t> leader;
};

/// What compute takes where slow items are drawn, priced by the costs: of an op with collectives
/// inside, a slow device makes the compute longer and a slow link the collectives.
struct SlowTimes {
  struct Choice {
    std::vector<std::size_t> items;  // of Perturbation::slow, that concern the task
    std::vector<Time> time;          // time[set]: bit i of the set: items[i] is drawn
  };
  std::vector<Choice> choices;
  std::vector<std::uint32_t> of_task;  // index into choices, `none`; empty: none of all
  static constexpr std::uint32_t none = 0xffffffff;
};

/// Draws the durations of scenarios of one graph.
class Scenarios {
 public:
  /// What is known of the tasks of a graph beside it.
  struct Facts {
    StageVariation variation{};
    JitterMembers members{};
    SlowTimes slow{};  // compute tasks without a choice take an item's factor times their duration
  };

  /// Refers to the graph. `microbatches`: in a step of its program. Throws UsageError for a name
  /// that is neither a device nor a resource nor in Facts::slow, with the nearest, and for measured
  /// jitter without `variation`.
  Scenarios(const TaskGraph& graph, const Perturbation& perturbation, std::uint32_t microbatches,
            Facts facts);
  Scenarios(const TaskGraph& graph, const Perturbation& perturbation, std::uint32_t microbatches)
      : Scenarios(graph, perturbation, microbatches, Facts{}) {}

  /// Durations of `scenarios` consecutive scenarios from `first` on, a multiple of 4, in
  /// picoseconds: duration[task * scenarios + k]. `scenarios` is a multiple of 4, too.
  void draw(std::uint64_t first, std::size_t scenarios, std::span<std::int64_t> duration) const;

 private:
  struct SlowTasks {
    std::size_t item = 0;  // of Perturbation::slow
    std::vector<std::uint32_t> tasks;
  };
  void add_slow(std::size_t item);
  using Words = std::array<std::uint32_t, 16>;
  using Nominal = std::array<double, 16>;
  // By item of Perturbation::slow and scenario: whether it is drawn.
  std::vector<std::vector<char>> drawn_items(std::uint64_t first, std::size_t scenarios) const;
  bool is_drawn_apart(std::uint32_t task) const;
  Words words_of(std::uint32_t task, std::uint64_t scenario, std::size_t count) const;
  Words slowest(const Words& one, const Words& other) const;
  void jitter_block(std::uint32_t task, const Words& words, const Nominal& nominal,
                    std::size_t count, std::int64_t* out) const;

  const TaskGraph& graph_;
  Perturbation perturbation_;
  Facts facts_;
  std::uint32_t microbatches_ = 1;
  std::vector<bool> jitters_;          // by task
  std::vector<double> log_deviation_;  // by task: σ of the logarithm, of a log-normal law
  std::vector<SlowTasks> slow_;
  std::vector<std::uint32_t> first_op_;  // tasks: the first compute op of a device in a step
  std::vector<std::vector<std::uint32_t>> together_;  // by group of a leader: its tasks
  std::vector<std::uint32_t> group_of_;               // by task, an index into together_
};

}  // namespace stageline
