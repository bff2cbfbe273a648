// What should I do instead? Searches degrees, micro-batches, schedules, recomputation and cuts,
// with the simulator in the loop.
//
//      shapes ──bound──▶ families ──bound──▶ cuts ──simulate──▶ front ──refine──▶ answer
//
// A shape or family whose bound is no better than the front is pruned, and counted: what is left
// unsimulated is known to be no better.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/planner/candidate.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/study/figures/training_rates.hpp"

namespace stageline::planner {

/// What is not searched: the values to choose among; empty: all that make sense.
struct PlanSpace {
  std::vector<int> devices;  // used in all; empty: all of the cluster
  std::vector<int> tensor, context, expert, data, pipeline;
  std::vector<int> expert_tensor;  // empty: that of the setting
  std::vector<int> microbatch_size;
  std::vector<Zero> zero;
  std::vector<std::string> cp_comm_type;  // of shapes with context parallelism
  std::vector<ScheduleSpec> schedules;    // empty: all synchronous ones, with knobs that change
                                          // memory; cut sequences where they are of kernels
  std::vector<Recomputation> recomputation;
  std::vector<Offloading> offloading;  // empty: none is offloaded
  std::vector<std::string> partitions;
  std::optional<bool> sequence_parallel;
  bool asynchronous = false;  // search schedules without flush, too
  bool plain_alone = false;   // a pipeline of one rank runs 1F1B and no other schedule
};

/// "schedule=1f1b", "tp=4|8", "microbatch-size=1": one item of --fix, which replaces what the space
/// says of that key. Throws UsageError, with the nearest key.
void fix(PlanSpace& space, const std::string& item);

/// The keys of --fix: "tp", "microbatch-size", …: those of the settings that a plan searches, as
/// their flags have them, and "asynchronous".
std::vector<std::string> fix_names();

enum class Objective : std::uint8_t { time, memory, devices, cost };
inline constexpr std::array all_objectives{Objective::time, Objective::memory, Objective::devices,
                                           Objective::cost};
std::string_view name(Objective objective);

struct PlanProgress {
  std::int64_t judged = 0;   // simulated
  std::int64_t pruned = 0;   // by a bound
  std::int64_t refused = 0;  // that cannot run: with the rules of their schedule, or the model
  std::int64_t left = 0;     // not looked at yet, as far as they are counted
  Time best{};               // step of the fastest that fits; 0: none
  Time bound{};              // no candidate of the space is faster
  std::string best_flags;
};

struct PlanRequest {
  SettingRequest setting;    // the trace, the cluster, and what all candidates share
  std::int64_t samples = 0;  // of one update, all replicas together
  PlanSpace space;
  Objective objective = Objective::time;
  /// Recommend the least memory among those at most so much slower. Empty: default_within, or where
  /// points tie with the fastest the best of them.
  std::optional<double> within{};
  // The front ends where a step takes so much longer than the fastest; empty: nowhere.
  std::optional<double> slower_by;
  std::optional<std::chrono::milliseconds> budget;
  int threads = 0;          // 0: one a core; changes no result without a budget
  bool thorough = false;    // also what is estimated to be far behind the front
  bool exhaustive = false;  // no pruning: every candidate is simulated
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const PlanProgress&)> progress;  // called some times a second, from one thread
  TrainingBudget training{};  // GPU-hours and cost of the points; its price prices a step, too
  bool keep_dropped = false;  // fills Plan::dropped
};

struct PlanPoint {
  Candidate candidate;
  Verdict verdict;
  TrainingRates rates{};               // of a language model
  std::optional<double> dollars_step;  // where the devices have a price
  // Its step where a byte between machines takes twice as long; empty: there is no such link, or
  // the search was ended early.
  std::optional<Time> half_network{};
  std::string flags;  // that reproduce it
  int devices() const { return candidate.shape.devices(); }
};

/// What is missing where nothing fits: the least found.
struct PlanMissing {
  MemoryNeed need;
  std::string flags;  // of the candidate that lacks least
};

/// What was not simulated, or could not be: a shape, or a family of candidates of one.
struct PlanDropped {
  std::string what;           // the flags that all of them share
  std::string why;            // the bound in words with its figures, or the rule that refuses them
  std::optional<Time> bound;  // of what was pruned; empty: refused
  std::int64_t candidates = 1;
};

struct Plan {
  /// Not dominated in step time, peak memory and devices; the fastest first. Those that may fit:
  /// memory that is unknown is no reason to leave one out.
  std::vector<PlanPoint> front;
  std::optional<std::size_t> recommended;  // into the front
  std::string sentence;                    // the recommendation, and what the next step up costs
  PlanProgress counts;
  Time bound{};                        // no candidate that was pruned or simulated is faster
  bool exhausted = false;              // everything in the space was simulated or pruned by a bound
  bool partial = false;                // the budget or `stop` ended it
  bool behind = false;                 // counts.left: estimated to be far behind the front
  std::optional<PlanMissing> missing;  // nothing fits
  /// The points that tie with the first, itself one of them; empty where they have no range.
  std::vector<std::size_t> tied{};
  std::vector<std::string>
      ties{};  // notes_on_advice() of the points on as many devices as the first
  std::vector<std::string> notes;
  std::vector<PlanDropped> dropped{};  // with keep_dropped, in the order of the search
};

/// Throws UsageError where the space is contradictory or empty (samples that no micro-batch size
/// divides, degrees whose product is not the number of devices), and what opening the setting
/// throws. Never worse than any row of compare() for a shape of several pipeline ranks in the
/// space, where nothing is left.
Plan plan(const PlanRequest& asked);

/// The micro-batch sizes and counts of a number of samples on so many replicas: all divisors that
/// the trace can be priced for, smallest first.
std::vector<Shape> shapes_of(const PlanRequest& request);

}  // namespace stageline::planner
